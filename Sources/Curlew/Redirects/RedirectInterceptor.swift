// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Interceptors are what Curlew itself puts around requests, by the same protocol that users conform to. A session puts
// them into its chains; they know requests, responses and the chain, nothing of sessions.

/// Follows redirects, each as a request of its own (RFC 9110 §15.4): the loop around ``RedirectRules``.
struct RedirectInterceptor: Interceptor {
    /// What holds for requests that say nothing themselves.
    let policy: RedirectPolicy

    func intercept(_ request: Request, context: InterceptorContext, next: Next) async throws -> IncomingResponse {
        var policy = request.options.redirects ?? policy
        // What the session calls sensitive is so for every request.
        if request.options.redirects != nil { policy.sensitiveFields += self.policy.sensitiveFields }
        // A try that came before this one may have been led elsewhere.
        context.run.isAskedAnew(request)
        var trail = RedirectTrail(max: policy.maximum)
        var request = request
        while true {
            var response = try await next(request)
            response.head = trail.marking(response.head)
            guard let following = try await following(response, request, policy) else { return response }
            await response.discard()
            try trail.follow(following, after: request, response.head, metrics: response.metrics ?? TransferMetrics())
            context.run.isLed(elsewhere: following, by: response.head.status)
            request = following
        }
    }

    /// What is sent after a response; nil when it is the result.
    private func following(
        _ response: IncomingResponse, _ request: Request, _ policy: RedirectPolicy
    ) async throws(NetworkError) -> Request? {
        guard policy.followsSome, RedirectRules.redirecting.contains(response.head.status) else { return nil }
        return try await policy.next(after: request, target: request.validated(), response.head)
    }
}
