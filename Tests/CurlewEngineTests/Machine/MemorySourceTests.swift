// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewSupport
import Glibc
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct MemorySourceTests {
    private let hold = PressureMachine.hold

    // MARK: Triggers

    @Test func triggersAreRegisteredForTheMachineAndTheGroup() throws {
        let scene = try MemoryScene()
        let source = MemorySource(scene.places)
        #expect(source.paths == [scene.pressure, "\(scene.group)/memory.pressure", "\(scene.group)/memory.events"])
        #expect(source.support.watched.map(\.kind) == [.machine, .controlGroup, .events])
        #expect(source.support.missing == [])
        #expect(source.triggers.count == 4)
        // In a regular file, the second trigger replaces the first one.
        #expect(try scene.text(scene.pressure) == "full 100000 2000000\0")
        #expect(try scene.text("\(scene.group)/memory.pressure") == "full 100000 2000000\0")
        #expect(source.read(now: 0).level == .normal)
        #expect(source.deadline == Monotonic.never)
    }

    @Test(arguments: [(0, MemoryLevel.warning), (1, .critical), (2, .warning), (3, .critical)])
    func triggerRaisesTheLevelForAWhile(_ index: Int, _ level: MemoryLevel) throws {
        let scene = try MemoryScene()
        let source = MemorySource(scene.places)
        let event = KernelWait(source.triggers[index], POLLPRI)
        #expect(source.handle([event], now: 5))
        #expect(source.read(now: 5).level == level)
        #expect(source.deadline == hold + 5)
        #expect(!source.handle([event], now: 7), "the level stays")
        #expect(source.deadline == hold + 7)
        #expect(source.read(now: hold + 6).level == level)
        #expect(source.read(now: hold + 7).level == .normal)
        #expect(source.deadline == Monotonic.never)
    }

    /// After the removal of a group, poll(2) reports POLLERR for each of its triggers without end.
    @Test func removedTriggerIsDropped() throws {
        let scene = try MemoryScene()
        let source = MemorySource(scene.places)
        let triggers = source.triggers
        let path = "\(scene.group)/memory.pressure"
        #expect(source.handle([KernelWait(triggers[2], POLLPRI | POLLERR)], now: 5))
        #expect(source.read(now: 5).level == .normal)
        #expect(source.triggers == [triggers[0], triggers[1], triggers[3]])
        #expect(source.paths.contains(path), "the other trigger of the file stays")
        #expect(source.handle([KernelWait(triggers[3], POLLERR)], now: 5))
        #expect(source.triggers == [triggers[0], triggers[1]])
        #expect(!source.paths.contains(path))
        #expect(source.read(now: 5).support.missing == ["\(path): the interface was removed"])
        #expect(!source.handle([KernelWait(triggers[3], POLLPRI)], now: 6), "an event of a closed descriptor")
    }

    // MARK: Groups

    @Test func kernelWithoutPressureInformationIsReported() throws {
        let scene = try MemoryScene(group: ["cgroup.type": ""], hasPressure: false)
        let source = MemorySource(scene.places)
        #expect(source.support.watched == [])
        #expect(source.waits == [])
        #expect(
            source.support.missing == [
                "\(scene.pressure): the kernel has no pressure stall information",
                "\(scene.group)/memory.pressure: the kernel has no pressure stall information",
                "\(scene.group)/memory.events: the group has no memory controller",
            ])
    }

    @Test func rootGroupHasNoPressureOfItsOwn() throws {
        let scene = try MemoryScene(group: ["memory.pressure": ""])
        let source = MemorySource(scene.places)
        #expect(source.paths == [scene.pressure])
        #expect(source.support.missing == ["\(scene.group): the root of the control groups has no pressure of its own"])
    }

    @Test func processWithoutAGroupWatchesTheMachine() throws {
        let scene = try MemoryScene()
        try scene.write("0::/../other\n", to: "\(scene.proc)/self/cgroup")
        let source = MemorySource(scene.places)
        #expect(source.paths == [scene.pressure])
        #expect(source.support.missing == ["the process has no control group of version 2"])
    }

    @Test func eventsOfTheGroupRaiseTheLevel() throws {
        let scene = try MemoryScene()
        let events = "\(scene.group)/memory.events"
        try scene.write("high 10\nmax 10\noom 10\noom_kill 10\n", to: events)
        let source = MemorySource(scene.places)
        try scene.write("high 11\nmax 10\noom 10\noom_kill 10\n", to: events)
        // The time of the first reading is that of the clock.
        let now = Monotonic.now()
        #expect(source.handle(source.ready(), now: now))
        #expect(source.read(now: now).level == .warning)
        // Further changes are read after the pause only.
        #expect(source.waits.map(\.descriptor) == source.triggers)
        #expect(source.deadline == now + MemorySource.pause)
        try scene.write("high 11\nmax 10\noom 11\noom_kill 10\n", to: events)
        #expect(source.read(now: now + MemorySource.pause - 1).level == .warning)
        let later = now + MemorySource.pause
        #expect(source.read(now: later).level == .critical)
        #expect(source.deadline == later + MemorySource.pause, "the counters have changed in the pause")
        #expect(source.read(now: later + MemorySource.pause).level == .critical)
        #expect(source.waits.count == source.triggers.count + 1, "the next change is reported at once")
        #expect(source.deadline == later + hold)
        #expect(source.read(now: later + hold).level == .normal)
        #expect(source.deadline == Monotonic.never)
    }

    @Test func harmlessEventsOnlyPause() throws {
        let scene = try MemoryScene()
        let pressure = "\(scene.group)/memory.pressure"
        let source = MemorySource(scene.places)
        try scene.write("some avg10=0.00 total=1000\n", to: pressure)
        let events = "\(scene.group)/memory.events"
        try scene.write("high 11\n", to: events)
        let now = Monotonic.now() + hold
        #expect(source.handle(source.ready(), now: now), "the stall time was unknown before")
        try scene.write("high 12\n", to: events)
        let later = now + MemorySource.pause
        #expect(source.read(now: later).level == .warning)
        #expect(source.read(now: now + hold).level == .normal, "the group waited for 0 ms")
        #expect(source.deadline == Monotonic.never)
    }

    @Test func removedEventsAreDropped() throws {
        let scene = try MemoryScene()
        let source = MemorySource(scene.places)
        #expect(unlink("\(scene.group)/memory.events") == 0)
        let waits = source.waits.filter { CInt($0.events) == POLLIN }
        #expect(source.handle(waits, now: Monotonic.now()))
        #expect(source.waits.map(\.descriptor) == source.triggers)
        #expect(source.support.missing == ["\(scene.group)/memory.events: it was removed"])
    }

    // MARK: The service manager

    @Test func fileOfTheServiceManagerReplacesTheWarnings() throws {
        let scene = try MemoryScene()
        let path = "\(scene.root)/service"
        try scene.write("", to: path)
        scene.set("MEMORY_PRESSURE_WATCH", path)
        scene.set("MEMORY_PRESSURE_WRITE", "c29tZSAyMDAwMDAgMjAwMDAwMAA=")
        let source = MemorySource(scene.places)
        #expect(source.support.watched.map(\.kind) == [.serviceManager, .machine, .controlGroup, .events])
        #expect(try scene.text(path) == "some 200000 2000000\0")
        #expect(source.triggers.count == 3)
        #expect(source.handle([KernelWait(source.triggers[0], POLLPRI)], now: 5))
        #expect(source.read(now: 5).level == .warning)
        #expect(source.handle([KernelWait(source.triggers[1], POLLPRI)], now: 5))
        #expect(source.read(now: 5).level == .critical)
    }

    @Test func bytesInAFIFOAreAWarning() throws {
        let scene = try MemoryScene(group: [:], hasPressure: false)
        let path = "\(scene.root)/fifo"
        #expect(mkfifo(path, 0o600) == 0)
        scene.set("MEMORY_PRESSURE_WATCH", path)
        scene.set("MEMORY_PRESSURE_WRITE", "eA==")
        let source = MemorySource(scene.places)
        #expect(source.paths == [path])
        let writer = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(write(writer, "pressure", 8) == 8)
        #expect(source.handle(source.ready(), now: 5))
        #expect(source.read(now: 5).level == .warning)
        close(writer)
        var entries = source.waits.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        #expect(poll(&entries, nfds_t(entries.count), 0) == 0, "the bytes are discarded, and the FIFO stays open")
    }

    @Test func bytesOnAUnixSocketAreAWarning() throws {
        let scene = try MemoryScene(group: [:], hasPressure: false)
        let path = "/tmp/curlew-\(getpid())-\(UInt32.random(in: 0 ... .max)).socket"
        let listener = try UnixListener(path)
        scene.set("MEMORY_PRESSURE_WATCH", path)
        scene.set("MEMORY_PRESSURE_WRITE", "eHl6")
        let source = MemorySource(scene.places)
        #expect(source.paths == [path])
        let peer = accept(listener.descriptor, nil, nil)
        var bytes = [UInt8](repeating: 0, count: 8)
        #expect(recv(peer, &bytes, 8, 0) == 3 && bytes.prefix(3) == [0x78, 0x79, 0x7A])
        #expect(send(peer, "!", 1, 0) == 1)
        #expect(source.handle(source.ready(), now: 5))
        #expect(source.read(now: 5).level == .warning)
        close(peer)
        #expect(source.handle(source.ready(), now: 6))
        #expect(source.waits == [])
        #expect(source.read(now: 6).level == .warning)
        #expect(source.support.missing.last == "\(path): the interface was removed")
    }

    @Test func serviceManagerSwitchesWatchingOff() throws {
        let scene = try MemoryScene(variables: ["MEMORY_PRESSURE_WATCH": "/dev/null"])
        let source = MemorySource(scene.places)
        #expect(source.waits == [] && source.support.watched == [])
        #expect(source.support.missing == ["MEMORY_PRESSURE_WATCH is /dev/null"])
    }

    @Test(
        arguments: [
            ("relative", nil, "MEMORY_PRESSURE_WATCH: the path is relative"),
            ("/", "e", "MEMORY_PRESSURE_WRITE: the value is not Base64"),
            ("/nonexistent/x", nil, "MEMORY_PRESSURE_WATCH: /nonexistent/x: No such file or directory"),
        ] as [(String, String?, String)])
    func invalidVariablesLeaveTheOwnTriggers(_ path: String, _ text: String?, _ reason: String) throws {
        let scene = try MemoryScene(variables: ["MEMORY_PRESSURE_WATCH": path])
        scene.set("MEMORY_PRESSURE_WRITE", text)
        let source = MemorySource(scene.places)
        #expect(source.support.missing == [reason])
        #expect(source.triggers.count == 4)
    }
}

/// A listening Unix socket.
private final class UnixListener {
    let descriptor: CInt
    private let path: String

    init(_ path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let code = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard code == 0, listen(descriptor, 4) == 0 else { throw DiskFailure("cannot listen at", path, errno) }
    }

    deinit {
        close(descriptor)
        unlink(path)
    }
}
