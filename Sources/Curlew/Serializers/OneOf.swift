// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Reads a response by one of several serializers, whose results are the cases of an enum of yours.
///
/// The content type chooses: first the serializers that accept just this type, then those of `application/*+json`, then
/// those of `text/*`, then those of `*/*`, always in the order given. The first that succeeds gives the result. Without
/// a content type, or when none accepts it, all are tried in order.
///
/// ```swift
/// enum Reply: Sendable { case user(User), problem(ProblemDetails), text(String) }
///
/// let reply: OneOf<Reply> = .oneOf(
///     .when(.json(User.self), Reply.user),
///     .when(.json(ProblemDetails.self), Reply.problem),
///     .when(.text, Reply.text))
/// ```
public struct OneOf<Output: Sendable>: ResponseSerializer {
    /// A serializer and what becomes of its result.
    public struct Choice: Sendable {
        let accepts: [MediaType]
        let read: @Sendable (IncomingResponse) async throws -> Output
        let bound: @Sendable (any ResponseFormat) -> Choice

        /// A serializer and what becomes of its result.
        ///
        /// - Parameters:
        ///   - serializer: Reads the response.
        ///   - transform: Makes the common result of what was read: a case of an enum, as a rule. Where it throws, the
        ///     next choice is tried.
        public static func when<S: ResponseSerializer>(
            _ serializer: S, _ transform: @escaping @Sendable (S.Output) throws -> Output
        ) -> Choice {
            Choice(
                accepts: serializer.accepts,
                read: { try transform(await serializer.output(from: $0)) },
                bound: { .when(serializer.bound(to: $0), transform) })
        }
    }

    private let choices: [Choice]

    /// Reads by one of several serializers.
    public init(_ choices: [Choice]) {
        self.choices = choices
    }

    /// What any of them can read.
    public var accepts: [MediaType] {
        choices.flatMap(\.accepts).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// Reads the body once, and gives it to one serializer after the other, until one succeeds.
    ///
    /// - Throws: `NetworkError`: when none succeeds, the error of the first, which names those of the others; whatever
    ///   ended the transfer.
    public func output(from response: IncomingResponse) async throws -> Output {
        let body = try await response.collect()
        var failures: [NetworkError] = []
        for choice in order(for: response.head.mediaType) {
            let copy = IncomingResponse(response.head, IncomingBody(body), response.request, response.attempt)
            do {
                return try await choice.read(copy)
            } catch {
                let failure = NetworkError.decoding(
                    error, as: nil, of: response.head, body: body, request: response.request)
                if failure.isCancellation { throw failure }
                failures.append(failure)
            }
        }
        throw Self.failure(failures, response)
    }

    /// The same choices, each with the format.
    public func bound(to format: any ResponseFormat) -> OneOf { OneOf(choices.map { $0.bound(format) }) }

    /// The choices to try, the best first.
    private func order(for type: MediaType?) -> [Choice] {
        guard let type else { return choices }
        let ranked = choices.map { choice in
            (choice: choice, rank: choice.accepts.compactMap { type.rank(in: $0) }.min())
        }
        let order: [Choice] = (0...3).flatMap { rank in ranked.filter { $0.rank == rank }.map(\.choice) }
        return order.isEmpty ? choices : order
    }

    private static func failure(_ failures: [NetworkError], _ response: IncomingResponse) -> NetworkError {
        guard let first = failures.first else {
            return NetworkError(
                .decodingFailed, phase: .decoding, "There is no serializer to read the body.",
                request: response.request, response: response.head)
        }
        if failures.count == 1 { return first }
        let others = failures.dropFirst().map(\.message).joined(separator: " ")
        return NetworkError(
            first.kind, phase: first.phase, "\(first.message) Nor could others read it: \(others)", hint: first.hint,
            cause: first.cause, request: first.request, response: first.response, body: first.body)
    }
}

extension MediaType {
    /// How closely a range names this type: 0 when it is just that; nil when it is another.
    fileprivate func rank(in range: MediaType) -> Int? {
        guard matches(range) else { return nil }
        if range.type == "*" { return 3 }
        if range.subtype == "*" { return 2 }
        return range.subtype == subtype ? 0 : 1
    }
}

extension ResponseSerializer {
    /// Reads by one of several serializers: the content type chooses first, then the order.
    ///
    /// - Parameter choices: `.when(serializer, transform)`, where the transform is a case of an enum, as a rule.
    public static func oneOf<O: Sendable>(_ choices: OneOf<O>.Choice...) -> OneOf<O> where Self == OneOf<O> {
        OneOf(choices)
    }
}
