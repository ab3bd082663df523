// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Validates a response: its status, and whether the media type of its body is accepted.
struct ResponseValidator: Sendable {
    let statuses: StatusSet
    /// The accepted ranges, whose parameters are ignored; an empty list and a list with `*/*` accept every type.
    let accepting: [MediaType]

    /// Returns the error of a response that is refused; nil when the response is acceptable.
    ///
    /// The status has precedence: if status and type are both refused, the error for the type is the cause of the error
    /// for the status.
    ///
    /// - Parameter body: The body; nil while it is unknown, which does not count as empty.
    func refusal(of head: ResponseHead, body: Data?, request: Request) -> NetworkError? {
        let type = typeError(of: head, body: body, request: request)
        if statuses.contains(head.status) { return type }
        if head.cache?.reason == .onlyIfCached {
            return NetworkError(
                .cacheMiss, phase: .validating, "The cache has no usable response, and the request must not be sent.",
                hint: "Allow the network with another cache policy than .onlyIfCached.", request: request,
                response: head)
        }
        let what = head.status.reasonPhrase.map { "\($0) (\(head.status.code))" } ?? "status \(head.status.code)"
        return NetworkError(
            .unacceptableStatus, phase: .validating, "Request failed: \(what).",
            hint: Self.hint(for: head, hasBody: body?.isEmpty == false), cause: type, request: request, response: head,
            body: start(of: body))
    }

    private func start(of body: Data?) -> [UInt8] { body.map { Array($0.prefix(NetworkError.errorBodyLimit)) } ?? [] }

    private func typeError(of head: ResponseHead, body: Data?, request: Request) -> NetworkError? {
        // An empty body has no type: 204, 205, 304, responses to HEAD, or no content at all (RFC 9110 §8.3).
        if body?.isEmpty == true || accepting.isEmpty || accepting.contains(where: { $0.isAny }) { return nil }
        let contentType = head.contentType
        // The usual case, without parsing the type.
        if let contentType, accepting.contains(where: { $0.essence == contentType }) { return nil }
        let type = head.mediaType
        if let type, accepting.contains(where: { type.matches($0) }) { return nil }
        let found = contentType.map { "is “\($0.shortened(to: 128).escapingControls)”" } ?? "has no Content-Type"
        let accepted = accepting.map(\.essence).joined(separator: ", ")
        return NetworkError(
            .unacceptableContentType, phase: .validating, "The response \(found); accepted: \(accepted).",
            hint: "Read the body with `using: .bytes` or `using: .text`, or with a serializer that accepts its type.",
            request: request, response: head, body: start(of: body))
    }

    private static func hint(for head: ResponseHead, hasBody: Bool) -> String? {
        let body = hasBody ? "The first 64 KiB of the response's body are in error.body." : nil
        let hint = head.status.kind == .redirection ? redirection : hints[head.status]
        let parts = [hint, body].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: " ")
    }

    private static let redirection = "The redirect was not followed; see options.redirects."

    private static let hints: [Status: String] = [
        .unauthorized: "The server requires credentials, or other credentials than the request has.",
        .forbidden: "The server does not allow this request with these credentials.",
        .notFound: "Check the path and the base URL.",
        .methodNotAllowed: "The Allow field of the response lists the allowed methods.",
        .notAcceptable: "The server cannot respond with a type in the request's Accept field.",
        .unsupportedMediaType: "The server does not accept the type in the request's Content-Type field.",
        .tooManyRequests: "Send fewer requests; error.retriability says when to retry.",
        .serviceUnavailable: "error.retriability says when to retry.",
    ]
}

extension MediaType {
    /// Whether this is `*/*`, with any parameters.
    var isAny: Bool { type == "*" && subtype == "*" }
}
