// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Judges a response whose body was read: its status, and whether its body is of an accepted type.
struct ResponseValidator: Sendable {
    let statuses: StatusSet
    /// Ranges, whose parameters do not matter; no rule when it is empty or has `*/*`.
    let accepting: [MediaType]

    /// Why the response is refused; nil when it is acceptable.
    ///
    /// The status comes first; when both are refused, the type's error is the cause of the status's.
    ///
    /// - Parameter body: Nil while it is not known, and then not taken to be empty.
    func refusal(of head: ResponseHead, body: Data?, request: Request) -> NetworkError? {
        let type = refusalOfType(of: head, body: body, request: request)
        if statuses.contains(head.status) { return type }
        let what = head.status.reasonPhrase.map { "\($0) (\(head.status.code))" } ?? "status \(head.status.code)"
        return NetworkError(
            .unacceptableStatus, phase: .validating, "Request failed: \(what).",
            hint: Self.hint(for: head, hasBody: body?.isEmpty == false), cause: type, request: request, response: head,
            body: start(of: body))
    }

    private func start(of body: Data?) -> [UInt8] { body.map { Array($0.prefix(NetworkError.answerLimit)) } ?? [] }

    private func refusalOfType(of head: ResponseHead, body: Data?, request: Request) -> NetworkError? {
        // An empty body has no type: 204, 205, 304, answers to HEAD, or simply nothing to say (RFC 9110 §8.3).
        if body?.isEmpty == true || accepting.isEmpty || accepting.contains(where: { $0.isAny }) { return nil }
        let contentType = head.contentType
        // As mostly, and without taking it apart.
        if let contentType, accepting.contains(where: { $0.essence == contentType }) { return nil }
        let type = head.mediaType
        if let type, accepting.contains(where: { type.matches($0) }) { return nil }
        let found = contentType.map { "is “\($0.shortened(to: 128).escapingControls)”" } ?? "has no Content-Type"
        let accepted = accepting.map(\.essence).joined(separator: ", ")
        return NetworkError(
            .unacceptableContentType, phase: .validating, "The response \(found), where \(accepted) is accepted.",
            hint: "Read it by `using: .bytes` or `using: .text`, or with a serializer that accepts its type.",
            request: request, response: head, body: start(of: body))
    }

    private static func hint(for head: ResponseHead, hasBody: Bool) -> String? {
        let body = hasBody ? "What the server says is in error.body, its first 64 KiB." : nil
        let hint = head.status.kind == .redirection ? redirection : hints[head.status]
        let parts = [hint, body].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    private static let redirection = "The redirect was not followed; see options.redirects."

    private static let hints: [Status: String] = [
        .unauthorized: "The server wants credentials, or other ones than it got.",
        .forbidden: "The server knows who asks and does not allow it.",
        .notFound: "Check the path, and what the base URL makes of it.",
        .methodNotAllowed: "The Allow field of the response has the methods.",
        .notAcceptable: "The server has none of the types in the request's Accept field.",
        .unsupportedMediaType: "The server does not read the type in the request's Content-Type field.",
        .tooManyRequests: "Send fewer requests; error.retriability says when to try again.",
        .serviceUnavailable: "error.retriability says when to try again.",
    ]
}

extension MediaType {
    /// Whether it is `*/*`, with whatever weight.
    var isAny: Bool { type == "*" && subtype == "*" }
}
