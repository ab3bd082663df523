// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Stores the alternative services that servers announce in their responses (RFC 7838 §3).
///
/// The interceptor changes no request. It is one of the innermost ones, so it sees each response of a server.
struct AlternativeServiceInterceptor: FoldableInterceptor {
    let services: AlternativeServices
    /// The session's own evaluator.
    let trust: any TrustEvaluator

    let isInnermost = true
    let plainInterest: ChainInterest? = ChainInterest()
    // The field alone does not make the chain run, because many servers send it in every response.
    let noticedFields: HeadFields = .alternativeServices

    func interest(in request: Request) -> ChainInterest? { plainInterest }

    func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {
        guard head.fields.contains(.alternativeServices) else { return }
        learn(from: ResponseHead(head, url: request.url), to: request)
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        let response = try await next(request)
        learn(from: response.head, to: response.request)
        return response
    }

    private func learn(from head: ResponseHead, to request: Request) {
        // Without a check of the certificate, any machine on the network could announce services (RFC 7838 §2.1).
        services.receive(head, from: request.url) { host in
            (request.trust ?? trust).isKnownToCheckIdentity(of: host)
        }
    }
}
