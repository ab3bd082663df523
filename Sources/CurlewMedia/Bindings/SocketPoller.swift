// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings has the sockets of the endpoint: system calls that never block, and a thread that waits for all of them.

internal import CurlewEngine
internal import CurlewShims
internal import CurlewSupport
internal import Glibc

/// One thread with an epoll, which resumes the tasks that wait for sockets.
///
/// The thread holds the poller until ``close()``.
final class SocketPoller: Sendable {
    /// The event of a socket that a task waits for.
    enum Interest: Sendable {
        case reading, writing
        /// The other side has closed the connection, or its sending half.
        case hangUp

        fileprivate var mask: UInt32 {
            switch self {
            case .reading: curlew_readable | curlew_peer_closed
            case .writing: curlew_writable
            case .hangUp: curlew_peer_closed
            }
        }
    }

    enum Outcome: Sendable {
        case ready, timedOut
        /// The task was cancelled, or the poller is closed.
        case ended
    }

    private struct Waiter {
        let id: UInt64
        let mask: UInt32
        let deadline: UInt64
        let continuation: UnsafeContinuation<Outcome, Never>
    }

    private struct State {
        /// The waiters of each descriptor; one that is missing is not in the epoll.
        var waiters: [CInt: [Waiter]] = [:]
        var lastID: UInt64 = 0
        var isClosed = false
    }

    /// The conditions that every waiter notices.
    private static let failures = curlew_failed | curlew_hung_up
    private static let wakeToken = UInt64.max

    private let epoll: CInt
    private let wake: CInt
    private let state = Lock(State())

    /// Creates a poller; nil when the system lacks descriptors or threads.
    init?() {
        epoll = curlew_epoll_create()
        wake = curlew_eventfd_create()
        guard epoll >= 0, wake >= 0, curlew_epoll_update(epoll, wake, false, curlew_readable, Self.wakeToken) == 0,
            startThread("curlew-player", { [self] in run() }) == 0
        else {
            state.withLock { $0.isClosed = true }
            return nil
        }
    }

    deinit {
        if epoll >= 0 { Glibc.close(epoll) }
        if wake >= 0 { Glibc.close(wake) }
    }

    /// Waits for a socket.
    ///
    /// - Parameter deadline: The time of the monotonic clock at which the wait ends.
    func wait(for descriptor: CInt, _ interest: Interest, until deadline: UInt64) async -> Outcome {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let waiter = Waiter(id: id, mask: interest.mask, deadline: deadline, continuation: continuation)
                let isWaiting = state.withLock { state in
                    if state.isClosed || Task.isCancelled { return false }
                    let isKnown = state.waiters[descriptor] != nil
                    state.waiters[descriptor, default: []].append(waiter)
                    return update(descriptor, isKnown: isKnown, &state)
                }
                if !isWaiting { continuation.resume(returning: .ended) } else if deadline != Monotonic.never { send() }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters[descriptor]?.firstIndex(where: { $0.id == id }) else { return nil }
                let waiter = state.waiters[descriptor]?.remove(at: index)
                _ = update(descriptor, isKnown: true, &state)
                return waiter
            }
            waiter?.continuation.resume(returning: .ended)
        }
    }

    /// Ends all waits and the thread.
    func close() {
        let waiters = state.withLock { state in
            defer { (state.waiters, state.isClosed) = ([:], true) }
            return state.waiters.values.flatMap { $0 }
        }
        for waiter in waiters { waiter.continuation.resume(returning: .ended) }
        send()
    }

    private func send() { eventfd_write(wake, 1) }

    /// Tells the kernel what the waiters of a descriptor wait for; a failure removes the newest one.
    private func update(_ descriptor: CInt, isKnown: Bool, _ state: inout State) -> Bool {
        let waiters = state.waiters[descriptor] ?? []
        let mask = waiters.reduce(0) { $0 | $1.mask }
        if waiters.isEmpty { state.waiters[descriptor] = nil }
        if waiters.isEmpty && !isKnown { return true }
        let token = UInt64(UInt32(bitPattern: descriptor))
        if curlew_epoll_update(epoll, descriptor, isKnown, mask, token) == 0 { return true }
        if !waiters.isEmpty { state.waiters[descriptor]?.removeLast() }
        if state.waiters[descriptor]?.isEmpty == true { state.waiters[descriptor] = nil }
        return false
    }

    // MARK: The thread

    private func run() {
        var ready = [curlew_ready](repeating: curlew_ready(), count: 64)
        while !state.withLock({ $0.isClosed }) {
            let count = Int(curlew_epoll_wait(epoll, &ready, CInt(ready.count), timeout()))
            var ended: [(Waiter, Outcome)] = []
            for event in ready.prefix(max(count, 0)) {
                if event.token == Self.wakeToken {
                    var value = eventfd_t()
                    eventfd_read(wake, &value)
                } else {
                    ended += take(CInt(bitPattern: UInt32(event.token))) { waiter in
                        event.mask & (waiter.mask | Self.failures) != 0 ? .ready : nil
                    }
                }
            }
            let now = Monotonic.now()
            for descriptor in state.withLock({ Array($0.waiters.keys) }) {
                ended += take(descriptor) { $0.deadline <= now ? .timedOut : nil }
            }
            for (waiter, outcome) in ended { waiter.continuation.resume(returning: outcome) }
        }
    }

    /// Removes the waiters of a descriptor for which a closure returns an outcome.
    private func take(_ descriptor: CInt, _ outcome: (Waiter) -> Outcome?) -> [(Waiter, Outcome)] {
        state.withLock { state in
            guard let waiters = state.waiters[descriptor] else { return [] }
            let taken = waiters.compactMap { waiter in outcome(waiter).map { (waiter, $0) } }
            if taken.isEmpty { return [] }
            state.waiters[descriptor] = waiters.filter { waiter in !taken.contains { $0.0.id == waiter.id } }
            _ = update(descriptor, isKnown: true, &state)
            return taken
        }
    }

    /// The time to the next deadline in milliseconds, rounded up; -1 without one.
    private func timeout() -> CInt {
        let next = state.withLock { state in
            state.waiters.values.reduce(Monotonic.never) { $1.reduce($0) { min($0, $1.deadline) } }
        }
        if next == Monotonic.never { return -1 }
        let now = Monotonic.now()
        return next <= now ? 0 : CInt(clamping: (next - now + 999_999) / 1_000_000)
    }
}
