// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Sends http requests to known hosts as https requests, and stores the policies of responses (RFC 6797 §8).
///
/// A chain has two of them. The outer one is inside the redirects, so it changes every hop before authenticators see
/// it. The innermost one checks what interceptors of attempts send, and sees each response and certificate error. The
/// history shows a change to https as a redirect with status 307, which no server has sent.
struct HSTSInterceptor: FoldableInterceptor {
    let store: HSTSStore
    /// The session's own evaluator.
    let trust: any TrustEvaluator
    let isInnermost: Bool

    let plainInterest: ChainInterest? = ChainInterest()

    // A policy is stored without the chain: many servers send one in every response.
    var noticedFields: HeadFields { isInnermost ? .strictTransportSecurity : [] }

    // A plain request is checked only once.
    var revision: Revision? { isInnermost ? nil : store.revision }

    func interest(in request: Request) -> ChainInterest? { ChainInterest() }

    func mustRun(for request: Request) -> Bool { upgradedURL(of: request) != nil }

    /// Returns the https URL of a request that must not be sent as http; nil for all other requests.
    private func upgradedURL(of request: Request) -> String? {
        if let url = store.upgraded(request.url) { return url }
        guard request.upgradesToHTTPS, let target = try? RequestTarget(request.url) else { return nil }
        return HSTSStore.https(target, request.url)
    }

    func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {
        guard isInnermost, head.fields.contains(.strictTransportSecurity) else { return }
        learn(from: ResponseHead(head, url: request.url), to: request)
    }

    private func learn(from head: ResponseHead, to request: Request) {
        // A look-up of one field does not parse the others.
        guard let joined = head[.strictTransportSecurity] else { return }
        // Only the first field counts (RFC 6797 §8.1).
        let policy = joined.contains(",") ? head.fields.values(for: .strictTransportSecurity).first : joined
        guard let policy else { return }
        // Without a check of the certificate, any machine on the network could send a policy.
        store.receive(policy, from: request.url) { host in
            (request.trust ?? trust).isKnownToCheckIdentity(of: host)
        }
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        // The first attempt may have been sent before the host became known.
        guard !context.isFirstAttemptSent, let url = upgradedURL(of: request) else {
            return try await send(request, context, next)
        }
        var upgraded = request
        upgraded.url = url
        upgraded.upgradesToHTTPS = false
        if let error = context.certificateError(for: upgraded) { throw Self.explained(error) }
        context.announce(.upgrades(to: upgraded))
        var response: IncomingResponse
        do throws(NetworkError) { response = try await send(upgraded, context, next) } catch {
            throw error.isCancellation ? error : Self.explained(error)
        }
        let head = ResponseHead(
            status: .temporaryRedirect, fields: [.location: url, "Non-Authoritative-Reason": "HSTS"], url: request.url)
        let hop = ResponseHead.RedirectHop(method: request.method, url: request.url, head: head)
        response.head.history.insert(hop, at: 0)
        return response
    }

    /// Returns the error of an https request with the reason why it was not sent as http.
    private static func explained(_ error: NetworkError) -> NetworkError {
        error.adding(hint: "The URL is http, but its host requires https (HSTS), so only https is used.")
    }

    /// Sends a request; after a certificate error of a known host, the transfer sends no more requests to that host
    /// (RFC 6797 §8.4).
    private func send(
        _ request: Request, _ context: Interception.Context, _ next: Interception.Next
    ) async throws(NetworkError) -> IncomingResponse {
        guard isInnermost else { return try await next(request) }
        if let error = context.certificateError(for: request) { throw error }
        do throws(NetworkError) {
            let response = try await next(request)
            learn(from: response.head, to: response.request)
            return response
        } catch {
            if error.kind == .untrusted, let target = try? request.target(), store.isKnown(target.host) {
                context.keepCertificateError(error, of: target.host)
            }
            throw error
        }
    }
}

extension RequestTarget {
    /// Whether this is the https form of an http URL: the same host, and the port that HSTS gives it (RFC 6797 §8.3);
    /// paths are not compared.
    func isUpgrade(of other: RequestTarget) -> Bool {
        scheme == .https && other.scheme == .http && host == other.host
            && port == (other.port == 80 ? 443 : other.port)
    }
}
