// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

// Curlew's own interceptors conform to the public protocol, and a session puts them into its chains. They use requests,
// responses and the chain, but not sessions.

/// Follows redirects, each as a request of its own (RFC 9110 §15.4): the loop around ``RedirectRules``.
struct RedirectInterceptor: FoldableInterceptor {
    /// The policy for requests without a policy of their own.
    private let policy: RedirectPolicy
    /// The hosts that require https; nil without HSTS.
    private let hsts: HSTSStore?
    let plainInterest: ChainInterest?
    let noticedFields: HeadFields = []

    init(policy: RedirectPolicy, hsts: HSTSStore? = nil) {
        self.policy = policy
        self.hsts = hsts
        plainInterest = ChainInterest(policy)
    }

    func interest(in request: Request) -> ChainInterest? {
        request.options.redirects.map { ChainInterest($0) } ?? plainInterest
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        var policy = request.options.redirects ?? policy
        // The session's sensitive fields are sensitive for every request.
        if request.options.redirects != nil { policy.sensitiveFields += self.policy.sensitiveFields }
        // This may be a retry after a redirect: start again with the original fields.
        context.announce(.restarts(request))
        var trail = RedirectHistory(max: policy.maximum)
        var request = request
        while true {
            var response = try await next(request)
            trail.add(response.head.history)
            response.head = trail.marking(response.head)
            guard let following = try await following(response, request, policy) else { return response }
            await response.discard()
            try trail.follow(following, after: request, response.head, metrics: response.metrics ?? TransferMetrics())
            context.announce(.redirects(to: following, by: response.head.status))
            request = following
        }
    }

    /// Returns the next request after a response, or nil when the response is the result.
    private func following(
        _ response: IncomingResponse, _ request: Request, _ policy: RedirectPolicy
    ) async throws(NetworkError) -> Request? {
        guard policy.followsSome, response.head.status.redirects else { return nil }
        // An interceptor inside may have sent the request elsewhere, and `Location` is relative to the sent request.
        return try await policy.next(
            after: request, target: response.request.validated(), response.head, hsts: hsts)
    }
}

extension ChainInterest {
    /// The responses that a policy may follow.
    fileprivate init(_ policy: RedirectPolicy) {
        self.init()
        guard policy.followsSome else { return }
        redirects = RedirectRules.statuses
        if case .custom = policy.rule { runsUserCode = true }
    }
}
