// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Notifies observers of the state of the machine's network interfaces, initially and after each change.
package final class LinkMonitor: Sendable {
    package static let shared = LinkMonitor()

    private struct Observer {
        var notify: @Sendable (LinkState) -> Void
        var known: LinkState?
    }

    private struct State {
        var observers: [UInt64: Observer] = [:]
        var last: UInt64 = 0
        /// The signal that wakes the watching thread; nil while no thread runs, such as without observers.
        var signal: Signal?
        var generation = curlew_fork_generation()
    }

    /// Wakes the watching thread, which then reads the state again and ends if it is no longer needed.
    private final class Signal: Sendable {
        let descriptor = curlew_eventfd_create()
        func send() { eventfd_write(descriptor, 1) }
        deinit { if descriptor >= 0 { close(descriptor) } }
    }

    private final class Descriptors: Sendable {
        let signal: Signal
        let netlink: CInt

        init(signal: Signal, netlink: CInt) {
            self.signal = signal
            self.netlink = netlink
        }

        deinit { close(netlink) }
    }

    private let state = Lock(State())

    private let readState: @Sendable () -> LinkState

    /// Creates a monitor.
    ///
    /// - Parameter readState: Reads the state; by default from the kernel.
    package init(readState: @escaping @Sendable () -> LinkState = { LinkState.current() }) {
        self.readState = readState
    }

    /// Makes the watching thread read the state again, like a change in the kernel.
    func readAgain() { state.withLock { $0.signal }?.send() }

    /// Calls `observer` with the current state and after each change, on a thread of the monitor.
    ///
    /// - Returns: The number for ``end(_:)``.
    package func observe(_ observer: @escaping @Sendable (LinkState) -> Void) -> UInt64 {
        let (number, signal) = state.withLock { state in
            state.last += 1
            state.observers[state.last] = Observer(notify: observer)
            let generation = curlew_fork_generation()
            if state.generation != generation {
                // A child of fork() does not inherit the thread.
                state.generation = generation
                state.signal = nil
            }
            if state.signal == nil { state.signal = start() }
            return (state.last, state.signal)
        }
        if let signal { signal.send() } else { notify(readState(), from: nil) }
        return number
    }

    package func end(_ number: UInt64) {
        let unwanted = state.withLock { state -> Signal? in
            guard state.observers.removeValue(forKey: number) != nil, state.observers.isEmpty else { return nil }
            defer { state.signal = nil }
            return state.signal
        }
        unwanted?.send()
    }

    /// Whether the watching thread runs.
    package var isWatching: Bool { state.withLock { $0.signal != nil } }

    /// Starts the watching thread; if it cannot be started, observers receive only the initial state.
    private func start() -> Signal? {
        let netlink = curlew_netlink_open()
        guard netlink >= 0 else { return nil }
        let signal = Signal()
        let descriptors = Descriptors(signal: signal, netlink: netlink)
        guard signal.descriptor >= 0 else { return nil }
        return startThread("curlew-links") { self.run(descriptors) } == 0 ? signal : nil
    }

    private func run(_ descriptors: Descriptors) {
        while state.withLock({ $0.signal === descriptors.signal }) {
            notify(readState(), from: descriptors.signal)
            var waiting = [
                pollfd(fd: descriptors.netlink, events: Int16(POLLIN), revents: 0),
                pollfd(fd: descriptors.signal.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            poll(&waiting, 2, -1)
            if waiting[0].revents != 0 { curlew_netlink_drain(descriptors.netlink) }
            if waiting[1].revents != 0 {
                var value = eventfd_t()
                eventfd_read(descriptors.signal.descriptor, &value)
            }
        }
    }

    /// Notifies every observer that does not have this state yet.
    ///
    /// If another watching thread has started since, it has read a newer state, and this method does nothing.
    private func notify(_ now: LinkState, from signal: Signal?) {
        let behind = state.withLock { state in
            guard state.signal === signal else { return [@Sendable (LinkState) -> Void]() }
            return state.observers.compactMap { number, observer -> (@Sendable (LinkState) -> Void)? in
                if observer.known == now { return nil }
                state.observers[number]?.known = now
                return observer.notify
            }
        }
        for notify in behind { notify(now) }
    }
}
