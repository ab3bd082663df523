// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Machine: states of the machine that the kernel reports. Each monitor has one thread for the process, which runs only
// while there are observers, and sleeps until the kernel reports a change.

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// The descriptors that report changes of a state of the machine, and the state itself.
///
/// One thread at a time uses a source. A source leaves out a failed descriptor, which would always be ready, and moves
/// its deadline when the deadline has passed.
package protocol KernelSource<State>: AnyObject {
    associatedtype State: Sendable & Equatable

    /// The descriptors to wait for.
    var waits: [KernelWait] { get }

    /// The time of the monotonic clock in nanoseconds at which ``read(now:)`` must be called even if no descriptor is
    /// ready; `Monotonic.never` for no such time.
    var deadline: UInt64 { get }

    /// Handles descriptors that are ready; must not block.
    ///
    /// - Returns: Whether the state may have changed, so that ``read(now:)`` must be called.
    func handle(_ ready: [KernelWait], now: UInt64) -> Bool

    /// Returns the present state; must not block for long.
    func read(now: UInt64) -> State
}

extension KernelSource {
    package var deadline: UInt64 { Monotonic.never }
}

/// A descriptor, and the events of poll(2) that a source waits for or that have occurred.
package struct KernelWait: Sendable, Hashable {
    package var descriptor: CInt
    package var events: Int16

    package init(_ descriptor: CInt, _ events: CInt) {
        self.descriptor = descriptor
        self.events = Int16(truncatingIfNeeded: events)
    }
}

/// Notifies observers of a state of the machine, initially and after each change.
package final class KernelMonitor<State: Sendable & Equatable>: Sendable {
    package typealias Notify = @Sendable (State) -> Void

    private struct Observer {
        var notify: Notify
        var known: State?
    }

    private struct Watch {
        var observers: [UInt64: Observer] = [:]
        var last: UInt64 = 0
        /// The signal that wakes the watching thread; nil while no thread runs, such as without observers.
        var wake: Wake?
        var wakeUps: UInt64 = 0
        var generation = curlew_fork_generation()
    }

    /// Wakes the watching thread, which then reads the state again, or ends if it is no longer needed.
    private final class Wake: Sendable {
        let descriptor = curlew_eventfd_create()
        func send() { eventfd_write(descriptor, 1) }
        func clear() {
            var value = eventfd_t()
            eventfd_read(descriptor, &value)
        }
        deinit { if descriptor >= 0 { close(descriptor) } }
    }

    private let name: String
    private let spacing: UInt64
    private let unknown: State
    private let open: @Sendable () -> (any KernelSource<State>)?
    private let watch = Lock(Watch())

    /// Creates a monitor; its thread starts with the first observer and ends with the last one.
    ///
    /// - Parameters:
    ///   - name: The name of the thread.
    ///   - spacing: The shortest time between two reads, in nanoseconds, for a kernel that reports many changes.
    ///   - unknown: The state when no source can be opened.
    ///   - open: Opens the source, on the watching thread; nil when the system does not permit it.
    package init(
        _ name: String, spacing: UInt64 = 50_000_000, unknown: State,
        open: @escaping @Sendable () -> (any KernelSource<State>)?
    ) {
        self.name = name
        self.spacing = spacing
        self.unknown = unknown
        self.open = open
    }

    /// Calls `notify` with the current state and after each change, on a thread of the monitor.
    ///
    /// If the source cannot be opened, the thread calls `notify` once, with the unknown state. If the thread cannot be
    /// started, this method does so.
    ///
    /// - Returns: The number for ``end(_:)``.
    package func observe(_ notify: @escaping Notify) -> UInt64 {
        let (number, wake) = watch.withLock { watch in
            watch.last += 1
            watch.observers[watch.last] = Observer(notify: notify)
            let generation = curlew_fork_generation()
            if watch.generation != generation {
                // A child of fork() does not inherit the thread.
                watch.generation = generation
                watch.wake = nil
            }
            if watch.wake == nil { watch.wake = start() }
            return (watch.last, watch.wake)
        }
        if let wake { wake.send() } else { self.notify(unknown, from: nil) }
        return number
    }

    /// Removes an observer; a call to it that has begun may still run.
    package func end(_ number: UInt64) {
        let unwanted = watch.withLock { watch -> Wake? in
            guard watch.observers.removeValue(forKey: number) != nil, watch.observers.isEmpty else { return nil }
            defer { watch.wake = nil }
            return watch.wake
        }
        unwanted?.send()
    }

    /// Whether the watching thread runs.
    package var isWatching: Bool { watch.withLock { $0.wake != nil } }

    /// The number of times that the watching threads woke up, for tests.
    package var wakeUps: UInt64 { watch.withLock { $0.wakeUps } }

    // MARK: The watching thread

    private func start() -> Wake? {
        let wake = Wake()
        guard wake.descriptor >= 0 else { return nil }
        return startThread(name) { self.run(wake) } == 0 ? wake : nil
    }

    /// Whether the thread of a signal is still the watching thread.
    private func isWanted(_ wake: Wake) -> Bool { watch.withLock { $0.wake === wake } }

    private func run(_ wake: Wake) {
        guard let source = open() else {
            // Later observers start another thread, which tries again.
            let isLast = watch.withLock { watch in
                defer { if watch.wake === wake { watch.wake = nil } }
                return watch.wake === wake
            }
            if isLast { notify(unknown, from: nil) }
            return
        }
        var next: UInt64 = 0
        var mustRead = true
        while isWanted(wake) {
            let now = Monotonic.now()
            if now >= source.deadline { mustRead = true }
            if mustRead, now >= next {
                notify(source.read(now: now), from: wake)
                next = now + spacing
                mustRead = false
            }
            // A deadline that passes before the next read is handled by that read.
            let ready = wait(source.waits, wake, until: mustRead ? next : source.deadline)
            watch.withLock { $0.wakeUps += 1 }
            if !ready.isEmpty, source.handle(ready, now: Monotonic.now()) { mustRead = true }
            if isNew(wake) { (mustRead, next) = (true, 0) }
        }
    }

    /// Whether a new observer has not received a state yet.
    private func isNew(_ wake: Wake) -> Bool {
        watch.withLock { watch in watch.wake === wake && watch.observers.values.contains { $0.known == nil } }
    }

    /// Waits for descriptors until a time of the monotonic clock, or until the signal is sent.
    private func wait(_ waits: [KernelWait], _ wake: Wake, until deadline: UInt64) -> [KernelWait] {
        var entries = waits.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        entries.append(pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0))
        var limit: CInt = -1
        if deadline != Monotonic.never {
            let now = Monotonic.now()
            // Round up, so that the deadline has passed after the wait.
            limit = deadline <= now ? 0 : CInt(clamping: (deadline - now + 999_999) / 1_000_000)
        }
        poll(&entries, nfds_t(entries.count), limit)
        if entries.removeLast().revents != 0 { wake.clear() }
        return entries.filter { $0.revents != 0 }.map { KernelWait($0.fd, CInt($0.revents)) }
    }

    /// Notifies every observer that does not have this state yet.
    ///
    /// If another watching thread has started since, it has read a newer state, and this method does nothing.
    private func notify(_ now: State, from wake: Wake?) {
        let behind = watch.withLock { watch in
            guard watch.wake === wake else { return [Notify]() }
            return watch.observers.compactMap { number, observer -> Notify? in
                if observer.known == now { return nil }
                watch.observers[number]?.known = now
                return observer.notify
            }
        }
        for notify in behind { notify(now) }
    }
}
