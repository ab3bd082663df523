// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct MemoryMonitorTests {
    /// Returns a scene whose FIFO reports warnings, and whose control group has events.
    private func scene() throws -> (MemoryScene, fifo: String) {
        let scene = try MemoryScene()
        let fifo = "\(scene.root)/fifo"
        guard mkfifo(fifo, 0o600) == 0 else { throw DiskFailure("cannot create", fifo, errno) }
        scene.set("MEMORY_PRESSURE_WATCH", fifo)
        return (scene, fifo)
    }

    private func warn(_ fifo: String) {
        let writer = open(fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(write(writer, "!", 1) == 1)
        close(writer)
    }

    @Test func idleMonitorDoesNotWakeUp() async throws {
        let (scene, fifo) = try scene()
        let monitor = MemoryMonitor(scene.places)
        let (states, continuation) = AsyncStream<(MemoryLevel, wakeUps: UInt64)>.makeStream()
        let number = monitor.observe { continuation.yield(($0.level, monitor.wakeUps)) }
        var changes = states.makeAsyncIterator()
        #expect(await changes.next()?.0 == .normal)
        // Other files of the control group change, and memory is used and freed.
        for round in 0..<500 {
            try scene.write("\(100_000 + round)", to: "\(scene.group)/memory.current")
            let block = [UInt8](repeating: UInt8(truncatingIfNeeded: round), count: 1 << 20)
            #expect(block.last == UInt8(truncatingIfNeeded: round))
        }
        warn(fifo)
        let change = await changes.next()
        #expect(change?.0 == .warning)
        // The start of the thread, the byte, and the delay after a recent read each cause one wake-up.
        #expect(change?.wakeUps ?? 99 <= 3)
        monitor.end(number)
    }

    @Test func eventsOfAControlGroupReachObservers() async throws {
        let (scene, _) = try scene()
        let events = "\(scene.group)/memory.events"
        try scene.write("oom_kill 1\n", to: events)
        let monitor = MemoryMonitor(scene.places)
        let (states, continuation) = AsyncStream<MemoryState>.makeStream()
        let number = monitor.observe { continuation.yield($0) }
        var changes = states.makeAsyncIterator()
        let first = await changes.next()
        #expect(first?.level == .normal)
        #expect(first?.support.watched.map(\.kind) == [.serviceManager, .machine, .controlGroup, .events])
        try scene.write("oom_kill 2\n", to: events)
        #expect(await changes.next()?.level == .critical)
        #expect(await monitor.state().level == .critical)
        #expect(monitor.isWatching)
        monitor.end(number)
        #expect(!monitor.isWatching)
    }

    @Test func systemWithoutInterfacesHasNoThread() async throws {
        let scene = try MemoryScene(group: [:], hasPressure: false)
        let monitor = MemoryMonitor(scene.places)
        let state = await monitor.state()
        #expect(state.level == .normal && state.support.watched == [])
        #expect(
            state.support.missing == [
                "\(scene.pressure): the kernel has no pressure stall information",
                "\(scene.group): the root of the control groups has no pressure of its own",
            ])
        #expect(!monitor.isWatching)
        // A later observer tries again.
        try scene.write("", to: scene.pressure)
        #expect(await monitor.state().support.watched.map(\.kind) == [.machine])
        #expect(!monitor.isWatching)
    }

    /// Whether this kernel permits triggers; the reason otherwise.
    static let refusal: String? = {
        let file = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(file) }
        let bytes = MemoryTrigger.warning.bytes
        return write(file, bytes, bytes.count) == bytes.count ? nil : String(cString: strerror(errno))
    }()

    @Test(.enabled(if: refusal == nil, "/proc/pressure/memory permits no triggers"))
    func triggersOfTheMachineAreRegistered() async {
        var places = MemoryPlaces()
        places.variable = { _ in nil }
        let monitor = MemoryMonitor(places)
        let support = await monitor.state().support
        #expect(support.watched.first == MemorySupport.Interface(kind: .machine, path: "/proc/pressure/memory"))
        let source = MemorySource(places)
        var entries = source.waits.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        poll(&entries, nfds_t(entries.count), 0)
        #expect(entries.allSatisfy { CInt($0.revents) & POLLERR == 0 }, "the kernel has taken the triggers")
    }
}
