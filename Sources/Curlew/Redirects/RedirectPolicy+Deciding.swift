// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension RedirectPolicy {
    /// Returns the next request after a response, or nil when the response is the result.
    ///
    /// - Parameters:
    ///   - request: The request that was sent, and `target` its normalised target.
    ///   - head: The response, with the history so far.
    ///   - hsts: The hosts that require https; nil without HSTS.
    /// - Throws: The errors of ``RedirectRules``, unless the policy follows no redirect, and those of `next` for a
    ///   proposal.
    func next(
        after request: Request, target: RequestTarget, _ head: ResponseHead, hsts: HSTSStore? = nil
    ) async throws(NetworkError) -> Request? {
        guard rule != .none,
            let proposal = try RedirectRules.proposal(
                for: request, target: target, head, withholding: sensitiveFields, hsts: hsts)
        else { return nil }
        return try await next(proposal, after: request, target: target, head)
    }

    /// Returns the next request after a redirect, or nil when the redirecting response is the result.
    ///
    /// - Parameters:
    ///   - proposal: The request that ``RedirectRules`` derived from the response.
    ///   - request: The request that was redirected, and `target` its normalised target.
    ///   - head: The response, with the history so far.
    /// - Throws: `.redirectRefused` when the closure fails or the policy does not allow a downgrade,
    ///   `.bodyNotReplayable` when the body must be sent again and can be read only once, `.cancelled` when the closure
    ///   was cancelled.
    func next(
        _ proposal: RedirectRules.Proposal, after request: Request, target: RequestTarget, _ head: ResponseHead
    ) async throws(NetworkError) -> Request? {
        let next: Request
        switch try await decision(about: proposal, request, head) {
        case .follow: next = proposal.request
        case .rewrite(let other):
            next = RedirectRules.rewritten(
                other, of: proposal, after: request, target: target, withholding: sensitiveFields)
        case .stop: return nil
        case .fail(let cause):
            throw NetworkError(
                .redirectRefused, phase: .receiving,
                "The redirect policy refused a redirect with a \(type(of: cause)).",
                hint: "See the error's cause, which the policy's closure threw.", cause: cause, request: request,
                response: head)
        }
        guard !next.body.isConsumed else {
            throw NetworkError(
                .bodyNotReplayable, phase: .receiving,
                "A \(head.status.code) redirect requires the body again, which can be read only once.",
                hint: next.body.replayHint(or: "a redirect policy that stops here"), request: request,
                response: head)
        }
        return next
    }

    private func decision(
        about proposal: RedirectRules.Proposal, _ request: Request, _ head: ResponseHead
    ) async throws(NetworkError) -> RedirectPolicy.Decision {
        switch rule {
        case .follow:
            guard !proposal.isDowngrade || allowsDowngrade else { throw Self.downgrade(request, head) }
            return .follow
        case .none: return .stop
        case .sameOrigin: return proposal.isSameOrigin ? .follow : .stop
        case .custom(let closure):
            let redirect = RedirectPolicy.Redirect(
                request: request, response: head, proposed: proposal.request, count: head.history.count,
                isSameOrigin: proposal.isSameOrigin, isDowngrade: proposal.isDowngrade)
            do {
                return try await closure.body(redirect)
            } catch {
                guard error is CancellationError || (error as? NetworkError)?.isCancellation == true else {
                    return .fail(error)
                }
                throw NetworkError(
                    .cancelled, phase: .receiving, "The redirect policy was cancelled.", cause: error,
                    request: request, response: head)
            }
        }
    }

    private static func downgrade(_ request: Request, _ head: ResponseHead) -> NetworkError {
        NetworkError(
            .redirectRefused, phase: .receiving, "A \(head.status.code) redirect leads from https to http.",
            hint: "If the request may continue without TLS, use RedirectPolicy.follow(allowingDowngrade: true).",
            request: request, response: head)
    }
}
