// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// What a client asks of the response to a request.
struct ResponseRule: Sendable {
    let request: Request
    private let types: [MediaType]

    /// - Parameter types: What the response's serializer can read.
    init(_ request: Request, _ types: [MediaType]) {
        self.request = request
        self.types = request.options.accepting ?? types
    }

    private var statuses: StatusSet { request.options.statuses ?? .success }

    /// Why a response is refused; nil for one that is acceptable.
    ///
    /// - Parameter body: The body, or its start; nil while it is not known, and then not taken to be empty.
    func refusal(of head: ResponseHead, startingWith body: Data?) -> NetworkError? {
        let judge = ResponseValidator(statuses: statuses, accepting: types)
        guard let refusal = judge.refusal(of: head, body: body, request: request) else { return nil }
        return head.tries?.completing(refusal) ?? refusal
    }

    /// What a transfer's error means to the client: where the status was refused, that is what happened, whatever became
    /// of the body.
    func reconsidered(_ error: NetworkError) -> NetworkError {
        guard let head = error.response, error.isAboutBody, !statuses.contains(head.status),
            let refusal = refusal(of: head, startingWith: Data(error.body))
        else { return error }
        return refusal.with(
            cause: error, attempts: error.attempts, earlier: error.earlier, duration: error.duration)
    }

    /// The head, and what there is of the body, of a response that did not come whole.
    ///
    /// - Parameter isEnough: Whether nobody wants the rest.
    /// - Throws: What the error means to the client, unless that is enough.
    func start(of error: NetworkError, isEnough: Bool) throws(NetworkError) -> (Data, ResponseHead) {
        if isEnough, error.kind == .bodyTooLarge, let head = error.response, statuses.contains(head.status) {
            return (Data(error.body), head)
        }
        throw reconsidered(error)
    }

    /// What a serializer makes of a response, if that is acceptable.
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
    /// Whether it is the body that did not come, or not as it should.
    fileprivate var isAboutBody: Bool {
        switch kind {
        case .bodyTooLarge, .connectionLost, .truncatedEncoding, .corruptEncoding, .timedOut, .invalidResponse: true
        default: false
        }
    }
}
