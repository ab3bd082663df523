// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Tells any number of observers the state of the machine's links, at once and after each change.
package final class LinkMonitor: Sendable {
    package static let shared = LinkMonitor()

    private struct Observer {
        var tell: @Sendable (LinkState) -> Void
        var known: LinkState?
    }

    private struct State {
        var observers: [UInt64: Observer] = [:]
        var last: UInt64 = 0
        /// What the watching thread listens to; nil while nobody observes.
        var signal: Signal?
        var generation = curlew_fork_generation()
    }

    /// Makes a watching thread look again, and find out whether it is still wanted.
    private final class Signal: Sendable {
        let descriptor = curlew_eventfd_create()
        func send() { eventfd_write(descriptor, 1) }
        deinit { if descriptor >= 0 { close(descriptor) } }
    }

    private final class Watch: Sendable {
        let signal: Signal
        let netlink: CInt

        init(signal: Signal, netlink: CInt) {
            self.signal = signal
            self.netlink = netlink
        }

        deinit { close(netlink) }
    }

    private let state = Lock(State())

    private let look: @Sendable () -> LinkState

    /// - Parameter look: Finds out the state; the kernel's unless given.
    package init(look: @escaping @Sendable () -> LinkState = { LinkState.current() }) { self.look = look }

    /// Makes the watching thread look again, as a change in the kernel does.
    func lookAgain() { state.withLock { $0.signal }?.send() }

    /// Calls `observer` with the state now and after each change, on a thread of the monitor's own.
    ///
    /// Gives the number to end with.
    package func observe(_ observer: @escaping @Sendable (LinkState) -> Void) -> UInt64 {
        let (number, signal) = state.withLock { state in
            state.last += 1
            state.observers[state.last] = Observer(tell: observer)
            let generation = curlew_fork_generation()
            if state.generation != generation {
                // A child of fork() has no threads of its parent.
                state.generation = generation
                state.signal = nil
            }
            if state.signal == nil { state.signal = start() }
            return (state.last, state.signal)
        }
        if let signal { signal.send() } else { tell(look(), from: nil) }
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

    /// Whether a thread watches.
    package var isWatching: Bool { state.withLock { $0.signal != nil } }

    /// Starts the thread; without one, observers keep the state they were told first.
    private func start() -> Signal? {
        let netlink = curlew_netlink_open()
        guard netlink >= 0 else { return nil }
        let signal = Signal()
        let watch = Watch(signal: signal, netlink: netlink)
        guard signal.descriptor >= 0 else { return nil }
        return startThread("curlew-links") { self.run(watch) } == 0 ? signal : nil
    }

    private func run(_ watch: Watch) {
        while state.withLock({ $0.signal === watch.signal }) {
            tell(look(), from: watch.signal)
            var waiting = [
                pollfd(fd: watch.netlink, events: Int16(POLLIN), revents: 0),
                pollfd(fd: watch.signal.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            poll(&waiting, 2, -1)
            if waiting[0].revents != 0 { curlew_netlink_drain(watch.netlink) }
            if waiting[1].revents != 0 {
                var value = eventfd_t()
                eventfd_read(watch.signal.descriptor, &value)
            }
        }
    }

    /// Tells every observer who does not know it yet, unless another thread watches by now, which has looked later.
    private func tell(_ now: LinkState, from signal: Signal?) {
        let behind = state.withLock { state in
            guard state.signal === signal else { return [@Sendable (LinkState) -> Void]() }
            return state.observers.compactMap { number, observer -> (@Sendable (LinkState) -> Void)? in
                if observer.known == now { return nil }
                state.observers[number]?.known = now
                return observer.tell
            }
        }
        for tell in behind { tell(now) }
    }
}
