// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Sends http requests to known hosts as https requests, and stores the policies of responses (RFC 6797 §8).
///
/// It is inside the redirects, so it sees every hop. The history of the response has the change as a redirect with the
/// status 307 that no server has sent.
struct HSTSInterceptor: FoldableInterceptor {
    let store: HSTSStore
    /// Whether the session's own evaluator checks certificates; without checks, any machine could send a policy.
    let checksCertificates: Bool

    let plainInterest: ChainInterest? = ChainInterest()
    // A policy is stored without the chain: many servers send one in every response.
    let noticedFields: HeadFields = .strictTransportSecurity

    var count: ChangeCount? { store.count }

    func interest(in request: Request) -> ChainInterest? { ChainInterest() }

    func mustRun(for request: Request) -> Bool { store.upgraded(request.url) != nil }

    func didBypass(_ request: Request, _ head: RawHead) {
        guard head.fields.contains(.strictTransportSecurity) else { return }
        note(ResponseHead(head, url: request.url), request)
    }

    private func note(_ head: ResponseHead, _ request: Request) {
        guard request.trust.map({ !($0 is InsecureTrust) }) ?? checksCertificates else { return }
        // A look-up of one field does not parse the others.
        guard let joined = head[.strictTransportSecurity] else { return }
        // Only the first field counts (RFC 6797 §8.1).
        let policy = joined.contains(",") ? head.fields.values(for: .strictTransportSecurity).first : joined
        if let policy { store.note(policy, from: request.url) }
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        // The first attempt may have been sent before the host became known.
        guard !context.isFirstAttemptSent, let url = store.upgraded(request.url) else {
            return try await send(request, context, next)
        }
        var upgraded = request
        upgraded.url = url
        if let error = context.certificateError(for: upgraded) { throw error }
        context.announce(.redirects(to: upgraded, by: .temporaryRedirect))
        var response = try await send(upgraded, context, next)
        let head = ResponseHead(
            status: .temporaryRedirect, fields: [.location: url, "Non-Authoritative-Reason": "HSTS"], url: request.url)
        let hop = ResponseHead.RedirectHop(method: request.method, url: request.url, head: head)
        response.head.history.insert(hop, at: 0)
        return response
    }

    /// Sends a request; after a certificate error of a known host, the transfer sends no more requests to that host
    /// (RFC 6797 §8.4).
    private func send(
        _ request: Request, _ context: Interception.Context, _ next: Interception.Next
    ) async throws(NetworkError) -> IncomingResponse {
        if let error = context.certificateError(for: request) { throw error }
        do throws(NetworkError) {
            let response = try await next(request)
            note(response.head, response.request)
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
    /// Whether this is the https URL of an http URL with the same host, path aside, and the port that HSTS gives it
    /// (RFC 6797 §8.3).
    func isUpgrade(of other: RequestTarget) -> Bool {
        scheme == .https && other.scheme == .http && host == other.host
            && port == (other.port == 80 ? 443 : other.port)
    }
}
