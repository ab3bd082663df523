// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import CurlewEngine
package import CurlewSupport

/// The interceptors that a request passes, from the outermost to the innermost.
///
/// Every request has a chain. If all of its interceptors can *fold*, the first attempt starts without the chain, which
/// then runs only if the engine reports a head or an end that an interceptor must see. The chain is an object, because
/// each request takes a reference to it.
final class Chain: Sendable {
    let interceptors: [any Interceptor]
    /// The interceptors that can fold: all of them, if the chain folds.
    private let foldable: [any FoldableInterceptor]
    private let canFold: Bool
    /// The union of the plain interests; nil if an interceptor has no plain interest.
    private let plainInterest: SharedInterest?
    /// The interceptors with a state, such as the cookies of a jar, and the revision of each state.
    private let stateful: [any FoldableInterceptor]
    private let revisions: [Revision]
    /// The fields of responses to plain requests that interceptors must be notified of.
    private let noticedFields: HeadFields

    /// Creates the chain of the built-in interceptors.
    init(_ interceptors: [any FoldableInterceptor]) {
        // The conversion of the whole array would look up the conformance of each interceptor, which takes long.
        self.interceptors = interceptors.map { $0 }
        foldable = interceptors
        canFold = true
        plainInterest = SharedInterest(ofPlainRequests: interceptors)
        stateful = interceptors.filter { $0.revision != nil }
        revisions = stateful.compactMap(\.revision)
        noticedFields = interceptors.reduce([]) { $0.union($1.noticedFields) }
    }

    /// Creates a chain with interceptors of the user around the whole transfer and around each of its attempts.
    init(_ own: [any Interceptor], around chain: Chain) {
        let innermost = chain.foldable.filter(\.isInnermost)
        interceptors =
            own.filter { $0.scope == .transfer } + chain.foldable.filter { !$0.isInnermost }
            + own.filter { $0.scope == .attempt } + innermost
        foldable = interceptors.compactMap { $0 as? any FoldableInterceptor }
        canFold = foldable.count == interceptors.count
        plainInterest = canFold ? SharedInterest(ofPlainRequests: foldable) : nil
        stateful = foldable.filter { $0.revision != nil }
        revisions = stateful.compactMap(\.revision)
        noticedFields = foldable.reduce([]) { $0.union($1.noticedFields) }
    }

    /// A request whose first attempt may start without the chain.
    struct Folded {
        /// The heads and failures of the attempt that the chain must see.
        let interest: SharedInterest
        /// The request as the interceptors would send it; nil if they do not change it.
        var request: Request?
    }

    /// Returns how the first attempt of a request starts without the chain; nil when the chain must send it.
    func fold(_ request: Request) -> Folded? {
        if let plainInterest, request.options.isPlain { return foldPlain(request, plainInterest) }
        guard canFold else { return nil }
        var interest = ChainInterest()
        var adapted: Request?
        for index in foldable.indices {
            let current = adapted ?? request
            guard !foldable[index].mustRun(for: current), let own = foldable[index].interest(in: current) else {
                return nil
            }
            interest.formUnion(own)
            if let changed = foldable[index].adapted(current) { adapted = changed }
        }
        return Folded(interest: SharedInterest(interest), request: adapted)
    }

    private func foldPlain(_ request: Request, _ interest: SharedInterest) -> Folded? {
        var adapted: Request?
        for index in revisions.indices where !revisions[index].isEmpty {
            let current = adapted ?? request
            if stateful[index].mustRun(for: current) { return nil }
            if let changed = stateful[index].adapted(current) { adapted = changed }
        }
        return Folded(interest: interest, request: adapted)
    }

    /// The total number of changes of these states, and whether one of them has entries, which may expire.
    var stateSummary: (changes: UInt64, hasEntries: Bool) {
        var changes: UInt64 = 0
        var hasEntries = false
        for index in revisions.indices {
            let revision = revisions[index]
            changes &+= revision.changes
            hasEntries = hasEntries || !revision.isEmpty
        }
        return (changes, hasEntries)
    }

    /// Notifies the interceptors that the response to a folded request has bypassed them.
    func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {
        guard canFold else { return }
        if request.options.isPlain, noticedFields.isDisjoint(with: head.fields.union(.every)) { return }
        for index in foldable.indices { foldable[index].didBypass(request, head, isComplete: isComplete) }
    }
}

/// An interceptor that need not run before the first attempt of a request.
///
/// The chain calls these functions in the order of its interceptors instead of `intercept`, which may still run later
/// with the same request; its first call of `next` then returns the response of the attempt that was started without
/// it. Therefore ``interest(in:)`` and ``adapted(_:)`` have no side effects, and `intercept` sends the request that
/// ``adapted(_:)`` returns. An interceptor that must wait, fail, or draw a random number before its first `next` cannot
/// fold: ``interest(in:)`` returns nil.
package protocol FoldableInterceptor: Interceptor {
    /// The interest for every request without options of its own; nil by default, and if the interest differs between
    /// such requests.
    var plainInterest: ChainInterest? { get }

    /// The revision of the state by which the interceptor changes requests or must run for them; nil, the default, for
    /// an interceptor without a state.
    ///
    /// For requests without options, the chain calls ``mustRun(for:)`` and ``adapted(_:)`` only while the state has
    /// entries; without a revision it does not call them. When a transfer starts, it folds again if the state has
    /// changed since the transfer was created, or if the plan is older than a second and the state had entries.
    var revision: Revision? { get }

    /// Whether the interceptor is inside the user's interceptors with the scope `.attempt`; false by default.
    var isInnermost: Bool { get }

    /// The response fields that ``didBypass(_:_:isComplete:)`` reads: the chain may skip the call for a response
    /// without them to a request without options. By default, the chain never skips it.
    var noticedFields: HeadFields { get }

    /// Returns the heads and failures of the first attempt that the interceptor must see; nil when it must run from the
    /// start.
    func interest(in request: Request) -> ChainInterest?

    /// Whether the interceptor must run for a request from the start because of its state; false by default.
    func mustRun(for request: Request) -> Bool

    /// Returns the request as the interceptor sends it; nil when it does not change it, as by default.
    func adapted(_ request: Request) -> Request?

    /// Called when the response to the request is final and the interceptor will not run; does nothing by default.
    ///
    /// It is called in the caller's task, or on the loop for a ``Transfer``: it must not wait or call code of the user.
    ///
    /// - Parameters:
    ///   - request: The request that was sent.
    ///   - head: The head of its response.
    ///   - isComplete: Whether the whole body was received.
    func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool)
}

extension FoldableInterceptor {
    package var plainInterest: ChainInterest? { nil }

    package var revision: Revision? { nil }

    package var isInnermost: Bool { false }

    package var noticedFields: HeadFields { .every }

    package func mustRun(for request: Request) -> Bool { false }

    package func adapted(_ request: Request) -> Request? { nil }

    package func didBypass(_ request: Request, _ head: RawHead, isComplete: Bool) {}
}

extension SharedInterest {
    /// Creates the union of the plain interests of interceptors; nil if one of them has none.
    fileprivate convenience init?(ofPlainRequests interceptors: [any FoldableInterceptor]) {
        var union = ChainInterest()
        for interceptor in interceptors {
            guard let interest = interceptor.plainInterest else { return nil }
            union.formUnion(interest)
        }
        self.init(union)
    }
}
