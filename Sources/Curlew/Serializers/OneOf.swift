// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Reads a response with one of several serializers, whose results are usually the cases of an enum.
///
/// The content type determines the order: first the serializers that accept exactly this type, then those of
/// `application/*+json`, then those of `text/*`, then those of `*/*`, each in the given order. The first serializer
/// that succeeds determines the result. Without a content type, or when no serializer accepts it, all are used in the
/// given order.
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
    /// A serializer and the conversion of its result.
    public struct Choice: Sendable {
        let accepts: [MediaType]
        let read: @Sendable (IncomingResponse) async throws -> Output
        let bound: @Sendable (any ResponseFormat) -> Choice

        /// Creates a choice from a serializer and the conversion of its result.
        ///
        /// - Parameters:
        ///   - serializer: The serializer that reads the response.
        ///   - transform: Converts the serializer's result to the common type, usually a case of an enum. If it throws,
        ///     the next choice is used.
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

    /// Creates a serializer from several choices.
    public init(_ choices: [Choice]) {
        self.choices = choices
    }

    /// The media types of all choices.
    public var accepts: [MediaType] {
        choices.flatMap(\.accepts).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// Reads the body once, and passes it to one serializer after the other, until one succeeds.
    ///
    /// - Throws: `NetworkError`: when all serializers fail, the error of the first one, with the messages of the
    ///   others; or the error that ended the transfer.
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

    /// Returns the same choices, each bound to the format.
    public func bound(to format: any ResponseFormat) -> OneOf { OneOf(choices.map { $0.bound(format) }) }

    /// Returns the choices in the order of use.
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
            first.kind, phase: first.phase, "\(first.message) Other serializers failed: \(others)", hint: first.hint,
            cause: first.cause, request: first.request, response: first.response, body: first.body)
    }
}

extension MediaType {
    /// Returns how closely a range matches this type: 0 for an exact match, 3 for `*/*`; nil for another type.
    fileprivate func rank(in range: MediaType) -> Int? {
        guard matches(range) else { return nil }
        if range.type == "*" { return 3 }
        if range.subtype == "*" { return 2 }
        return range.subtype == subtype ? 0 : 1
    }
}

extension ResponseSerializer {
    /// Reads with one of several serializers, ordered by the content type and then by position.
    ///
    /// - Parameter choices: `.when(serializer, transform)`, where the transform is usually a case of an enum.
    public static func oneOf<O: Sendable>(_ choices: OneOf<O>.Choice...) -> OneOf<O> where Self == OneOf<O> {
        OneOf(choices)
    }
}
