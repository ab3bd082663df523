// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Coalescing lets equal requests that run at the same time share one transfer.

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// Lets equal safe requests share one transfer, which ends early only when all of them have left.
///
/// It is inside the transfer's own interceptors, so it compares the requests that they have made, and outside of
/// retries, so that the requests share these too.
struct CoalescingInterceptor: FoldableInterceptor {
    /// Whether requests share transfers unless they have an option of their own.
    let isOn: Bool
    private let table = CoalescingTable()

    let noticedFields: HeadFields = []

    init(isOn: Bool) { self.isOn = isOn }

    var plainInterest: ChainInterest? { isOn ? nil : ChainInterest() }

    func interest(in request: Request) -> ChainInterest? { mayShare(request) ? nil : ChainInterest() }

    /// The number of requests that wait for a shared transfer.
    var waiting: Int { table.waiting }

    private func mayShare(_ request: Request) -> Bool {
        request.options.coalesces ?? isOn && request.method.isSafe && request.body.isNone
    }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        guard mayShare(request), context.canShare, let key = CoalescingKey(request, interceptorsOf: .attempt) else {
            return try await next(request)
        }
        while true {
            let (shared, isFirst) = table.join(key) { context.sharedRun(of: request) }
            do throws(NetworkError) {
                let response = try await shared.run.response()
                table.leave(shared, isOver: true)
                if !isFirst { shared.run.session.cache?.count(\.collapsed) }
                let result = result(response, of: shared.run, isFirst: isFirst)
                if let report = result.head.cache { context.announce(.cached(report, for: request)) }
                return result
            } catch {
                table.leave(shared, isOver: !Task.isCancelled)
                if Task.isCancelled || context.isClosed { throw error }
                // The others have left just before this request joined, or the time limit of the first one has passed.
                let wasAbandoned = error.isCancellation && shared.run.isCancelled
                let isOthersLimit = !isFirst && error.kind == .timedOut && context.remaining.map { $0 > .zero } ?? false
                guard wasAbandoned || isOthersLimit else { throw error }
            }
        }
    }

    private func result(_ response: Response<Data>, of run: TransferRun, isFirst: Bool) -> IncomingResponse {
        let body = IncomingBody(response.value, trailers: response.trailers)
        var head = response.head
        if !isFirst, var report = head.cache, !report.isHit {
            report.isCollapsed = true
            head = head.reporting(report)
        }
        return IncomingResponse(head, body, run.finalRequest, run.finalAttempt)
    }
}

/// The transfers that requests share.
///
/// Keys have interceptors of the user, so they are hashed and compared without the lock.
private final class CoalescingTable: Sendable {
    /// A transfer, and the number of requests that wait for it.
    final class Shared: Sendable {
        let run: TransferRun
        fileprivate let key: CoalescingKey
        fileprivate let hash: Int
        fileprivate let waiters = Lock(1)

        fileprivate init(_ run: TransferRun, _ key: CoalescingKey, _ hash: Int) {
            (self.run, self.key, self.hash) = (run, key, hash)
        }
    }

    /// The transfers by the hash values of their keys.
    private let table = Lock<[Int: [Shared]]>([:])

    /// Adds a request to the transfer of equal ones; makes the transfer for the first of them.
    func join(_ key: CoalescingKey, _ make: () -> TransferRun) -> (Shared, isFirst: Bool) {
        let hash = key.hashValue
        var made: Shared?
        while true {
            let known = table.withLock { $0[hash] ?? [] }
            if let shared = known.first(where: { $0.key == key }) {
                // The last request may have left in the meantime.
                if joined(shared) { return (shared, false) }
                continue
            }
            // The run is made without the lock, and is not started yet.
            let own = made ?? Shared(make(), key, hash)
            made = own
            let isAdded = table.withLock { table in
                guard (table[hash] ?? []).elementsEqual(known, by: ===) else { return false }
                table[hash, default: []].append(own)
                return true
            }
            if isAdded { return (own, true) }
        }
    }

    /// The number of requests that wait.
    var waiting: Int {
        table.withLock { $0.values.joined().reduce(0) { $0 + $1.waiters.withLock { $0 } } }
    }

    /// Adds a request to a transfer; returns false if the transfer accepts no others.
    private func joined(_ shared: Shared) -> Bool {
        table.withLock { table in
            guard table[shared.hash]?.contains(where: { $0 === shared }) ?? false else { return false }
            shared.waiters.withLock { $0 += 1 }
            return true
        }
    }

    /// Removes a request from a transfer, which accepts no others once it is over or the last request has left.
    func leave(_ shared: Shared, isOver: Bool) {
        let released = table.withLock { table -> [Shared] in
            let left = shared.waiters.withLock { waiters in
                waiters -= 1
                return waiters
            }
            guard isOver || left == 0, let known = table[shared.hash] else { return [] }
            let others = known.filter { $0 !== shared }
            table[shared.hash] = others.isEmpty ? nil : others
            return known
        }
        withExtendedLifetime(released) {}
    }
}
