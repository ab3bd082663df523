// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport
internal import Glibc

/// The interfaces of the kernel that report memory pressure: triggers of the pressure stall information of the machine
/// and of the process's control group, the events of that group, and the path that systemd has named.
///
/// Control groups of version 1 are not watched; the machine's triggers include their stalls. If the process moves to
/// another group, the source still watches the first one.
final class MemorySource: KernelSource {
    /// Closes a descriptor when it is released.
    private final class Descriptor {
        let number: CInt
        init(_ number: CInt) { self.number = number }
        deinit { close(number) }
    }

    /// A descriptor whose events report a level.
    private struct Watch {
        var descriptor: Descriptor
        var level: MemoryLevel
        var interface: MemorySupport.Interface
        /// Whether the events are bytes, which are discarded.
        var hasBytes = false
        var wait: KernelWait { KernelWait(descriptor.number, CInt(hasBytes ? POLLIN : POLLPRI)) }
    }

    /// The events of a control group.
    private struct Events {
        var descriptor: Descriptor
        var directory: String
        var counters: MemoryCounters
        var readAt: UInt64
        /// The time until which changes are not reported; nil if the next change is reported at once.
        var pausedUntil: UInt64?
    }

    /// The shortest time in nanoseconds between two reads of a group's counters: the kernel reports up to a hundred
    /// changes a second, and stall times are measured over a window.
    static let pause = MemoryTrigger.window * 1000

    /// The interfaces that are watched at present.
    private(set) var support = MemorySupport()
    private var machine = PressureMachine()
    private var watches: [Watch] = []
    private var events: Events?

    init(_ places: MemoryPlaces) {
        var triggers = [MemoryTrigger.warning, .critical]
        switch ServiceVariables(places.variable) {
        case .unset: break
        case .off:
            support.miss("MEMORY_PRESSURE_WATCH is /dev/null")
            return
        case .invalid(let reason): support.miss(reason)
        // The service manager's threshold replaces the default threshold of a warning.
        case .watch(let path, let bytes): if openService(path, bytes) { triggers.removeFirst() }
        }
        openTriggers(triggers, of: .machine, "\(places.proc)/pressure/memory")
        openGroup(triggers, places.proc)
    }

    // MARK: KernelSource

    var waits: [KernelWait] {
        var waits = watches.map(\.wait)
        if let events, events.pausedUntil == nil { waits.append(KernelWait(events.descriptor.number, CInt(POLLIN))) }
        return waits
    }

    var deadline: UInt64 { min(machine.deadline, events?.pausedUntil ?? Monotonic.never) }

    func handle(_ ready: [KernelWait], now: UInt64) -> Bool {
        var mustRead = false
        for ready in ready {
            if ready.descriptor == events?.descriptor.number {
                if look(now: now) { mustRead = true }
            } else if let position = watches.firstIndex(where: { $0.descriptor.number == ready.descriptor }) {
                if handle(position, events: CInt(ready.events), now: now) { mustRead = true }
            }
        }
        return mustRead
    }

    func read(now: UInt64) -> MemoryState {
        if let end = events?.pausedUntil, now >= end { _ = look(now: now) }
        _ = machine.handle(.time, at: now)
        return MemoryState(level: machine.level, support: support)
    }

    // MARK: Events

    /// Handles the events of a descriptor; returns whether the state has changed.
    private func handle(_ position: Int, events: CInt, now: UInt64) -> Bool {
        let watch = watches[position]
        var (isReport, isGone) = (events & CInt(POLLPRI) != 0, events & CInt(POLLERR | POLLHUP | POLLNVAL) != 0)
        if watch.hasBytes {
            let (count, isAtEnd) = discard(watch.descriptor)
            (isReport, isGone) = (count > 0, isGone || isAtEnd)
        } else if isGone {
            // The kernel also sets POLLPRI when the group is removed.
            isReport = false
        }
        if isGone {
            watches.remove(at: position)
            lose(watch.interface, "the interface was removed")
        }
        return (isReport && machine.handle(.report(watch.level), at: now) != nil) || isGone
    }

    /// Reads and discards at most 64 KiB; the descriptor stays ready if there are more bytes.
    private func discard(_ descriptor: Descriptor) -> (count: Int, isAtEnd: Bool) {
        var (total, piece) = (0, [UInt8](repeating: 0, count: 4096))
        for _ in 0..<16 {
            let count = Glibc.read(descriptor.number, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return (total, count == 0 || errno != EAGAIN) }
            total += count
        }
        return (total, false)
    }

    /// Reads the counters of the control group again; returns whether the state has changed.
    ///
    /// A pause follows, in which the source does not wait for changes. At its end, the source reads the counters once
    /// more, because they may have changed meanwhile.
    private func look(now: UInt64) -> Bool {
        guard var events else { return false }
        _ = discard(events.descriptor)
        guard let counters = Self.counters(events.directory) else {
            self.events = nil
            lose(MemorySupport.Interface(kind: .events, path: "\(events.directory)/memory.events"), "it was removed")
            return true
        }
        let level = counters.level(since: events.counters, elapsed: now - min(now, events.readAt))
        let isChanged = counters.hasEvents(since: events.counters)
        events.pausedUntil = isChanged || events.pausedUntil == nil ? now &+ Self.pause : nil
        events.counters.advance(to: counters)
        events.readAt = now
        self.events = events
        return level != .normal && machine.handle(.report(level), at: now) != nil
    }

    /// Records that an interface is no longer watched, unless another descriptor watches it.
    private func lose(_ interface: MemorySupport.Interface, _ reason: String) {
        if watches.contains(where: { $0.interface == interface }) { return }
        support.watched.removeAll { $0 == interface }
        support.miss("\(interface.path): \(reason)")
    }

    // MARK: Opening

    private func add(_ watch: Watch) {
        watches.append(watch)
        if !support.watched.contains(watch.interface) { support.watched.append(watch.interface) }
    }

    private func miss(_ path: String, _ code: CInt) {
        // The file is missing in an old kernel, and cannot be opened if the kernel was started with psi=0.
        let hasPressure = code != ENOENT && code != EOPNOTSUPP
        support.miss("\(path): \(hasPressure ? Self.text(code) : "the kernel has no pressure stall information")")
    }

    private func openTriggers(_ triggers: [MemoryTrigger], of kind: MemorySupport.Kind, _ path: String) {
        for trigger in triggers {
            // The kernel permits one trigger for each open file.
            let (descriptor, code) = Self.open(path, writing: trigger.bytes)
            guard let descriptor else {
                miss(path, code)
                continue
            }
            add(Watch(descriptor: descriptor, level: trigger.level, interface: .init(kind: kind, path: path)))
        }
    }

    private func openGroup(_ triggers: [MemoryTrigger], _ proc: String) {
        let (groups, mounts) = (Self.text("\(proc)/self/cgroup"), Self.text("\(proc)/self/mountinfo"))
        guard let directory = ControlGroup.directory(groups: groups, mounts: mounts) else {
            return support.miss("the process has no control group of version 2")
        }
        // The root of all groups has no such file, and its pressure is that of the machine.
        guard access("\(directory)/cgroup.type", F_OK) == 0 else {
            return support.miss("\(directory): the root of the control groups has no pressure of its own")
        }
        openTriggers(triggers, of: .controlGroup, "\(directory)/memory.pressure")
        openEvents(directory)
    }

    private func openEvents(_ directory: String) {
        let path = "\(directory)/memory.events"
        let notes = inotify_init1(O_NONBLOCK | O_CLOEXEC)
        guard notes >= 0 else { return support.miss("\(path): \(Self.text(errno))") }
        let descriptor = Descriptor(notes)
        guard inotify_add_watch(notes, path, UInt32(IN_MODIFY)) >= 0 else {
            let code = errno
            return support.miss("\(path): \(code == ENOENT ? "the group has no memory controller" : Self.text(code))")
        }
        guard let counters = Self.counters(directory) else { return support.miss("\(path): it cannot be read") }
        events = Events(descriptor: descriptor, directory: directory, counters: counters, readAt: Monotonic.now())
        support.watched.append(MemorySupport.Interface(kind: .events, path: path))
    }

    /// Watches the path that the service manager has named; returns false if it cannot be opened.
    private func openService(_ path: String, _ bytes: [UInt8]) -> Bool {
        var status = stat()
        let code: CInt
        var descriptor: Descriptor?
        if stat(path, &status) != 0 {
            code = errno
        } else if status.st_mode & S_IFMT == S_IFSOCK {
            (descriptor, code) = Self.connect(path, writing: bytes)
        } else if status.st_mode & S_IFMT == S_IFREG {
            (descriptor, code) = Self.open(path, writing: bytes)
        } else {
            // A FIFO would return the written bytes to this process.
            (descriptor, code) = Self.open(path, writing: [])
        }
        guard let descriptor else {
            support.miss("MEMORY_PRESSURE_WATCH: \(path): \(Self.text(code))")
            return false
        }
        add(
            Watch(
                descriptor: descriptor, level: .warning, interface: .init(kind: .serviceManager, path: path),
                hasBytes: status.st_mode & S_IFMT != S_IFREG))
        return true
    }

    /// Opens a file and writes bytes to it; returns errno on failure.
    private static func open(_ path: String, writing bytes: [UInt8]) -> (Descriptor?, CInt) {
        let number = Glibc.open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        return number < 0 ? (nil, errno) : send(bytes, over: Descriptor(number))
    }

    /// Connects to a Unix socket and writes bytes to it; returns errno on failure.
    private static func connect(_ path: String, writing bytes: [UInt8]) -> (Descriptor?, CInt) {
        guard let address = UnixAddress(Array(path.utf8)) else { return (nil, ENAMETOOLONG) }
        let socket = address.connected()
        return socket < 0 ? (nil, -socket) : send(bytes, over: Descriptor(socket))
    }

    private static func send(_ bytes: [UInt8], over descriptor: Descriptor) -> (Descriptor?, CInt) {
        if bytes.isEmpty { return (descriptor, 0) }
        let count = write(descriptor.number, bytes, bytes.count)
        return count == bytes.count ? (descriptor, 0) : (nil, count < 0 ? errno : EIO)
    }

    private static func counters(_ directory: String) -> MemoryCounters? {
        let events = text("\(directory)/memory.events")
        return events.isEmpty ? nil : MemoryCounters(events: events, pressure: text("\(directory)/memory.pressure"))
    }

    /// Returns the text of a file of the kernel; empty if it cannot be read.
    private static func text(_ path: String) -> String {
        String(decoding: (try? DiskFile.contents(of: path, upTo: 4 << 20)) ?? [], as: UTF8.self)
    }

    private static func text(_ code: CInt) -> String { String(cString: strerror(code)) }
}
