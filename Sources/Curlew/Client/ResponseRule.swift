// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The statuses and media types that are acceptable in the response to a request.
struct ResponseRule: Sendable {
    let request: Request
    private let types: [MediaType]

    /// - Parameter types: The media types that the response's serializer reads.
    init(_ request: Request, _ types: [MediaType]) {
        self.request = request
        self.types = request.options.accepting ?? types
    }

    private var statuses: StatusSet { request.options.statuses ?? .success }

    /// Returns the error for an unacceptable response, and nil for an acceptable response.
    ///
    /// - Parameter body: The body, or its start. Nil means that the body is unknown, which does not count as empty.
    func refusal(of head: ResponseHead, startingWith body: Data?) -> NetworkError? {
        let judge = ResponseValidator(statuses: statuses, accepting: types)
        guard let refusal = judge.refusal(of: head, body: body, request: request) else { return nil }
        return head.tries?.completing(refusal) ?? refusal
    }

    /// Returns the error to report for a transfer's error: an error about the body of a response with an unacceptable
    /// status becomes the error about the status.
    func errorToReport(_ error: NetworkError) -> NetworkError {
        guard let head = error.response, error.isAboutBody, !statuses.contains(head.status),
            let refusal = refusal(of: head, startingWith: Data(error.body))
        else { return error }
        return refusal.with(
            cause: error, attempts: error.attempts, earlier: error.earlier, duration: error.duration)
    }

    /// Returns the received part of the body, and the head, of a response whose body is incomplete.
    ///
    /// - Parameter ignoresRest: Whether the caller ignores the rest of the body.
    /// - Throws: The error to report, unless the received part is enough.
    func receivedPart(of error: NetworkError, ignoresRest: Bool) throws(NetworkError) -> (Data, ResponseHead) {
        if ignoresRest, error.kind == .bodyTooLarge, let head = error.response, statuses.contains(head.status) {
            return (Data(error.body), head)
        }
        throw errorToReport(error)
    }

    /// Returns the serializer's output for an acceptable response.
    func output<S: ResponseSerializer>(
        of serializer: S, _ body: Data, _ head: ResponseHead
    ) async throws(NetworkError) -> S.Output {
        if let refusal = refusal(of: head, startingWith: body) { throw refusal }
        do {
            return try await serializer.output(from: IncomingResponse(head, IncomingBody(body), request, nil))
        } catch {
            let failure = NetworkError.decoding(error, as: S.Output.self, of: head, body: body, request: request)
            throw head.tries?.completing(failure) ?? failure
        }
    }
}

extension NetworkError {
    /// Whether the error means that the body is missing, incomplete or invalid.
    fileprivate var isAboutBody: Bool {
        switch kind {
        case .bodyTooLarge, .connectionLost, .truncatedEncoding, .corruptEncoding, .timedOut, .invalidResponse: true
        default: false
        }
    }
}
