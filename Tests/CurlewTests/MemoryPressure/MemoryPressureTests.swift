// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewSupport
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct MemoryPressureTests {
    @Test func levelsAreDeliveredAndSkipped() async {
        let source = PressureSource()
        var levels = source.pressure.makeAsyncIterator()
        #expect(await levels.next() == .normal)
        source.set(.warning)
        #expect(await levels.next() == .warning)
        source.set(.critical)
        source.set(.normal)
        #expect(await levels.next() == .normal, "a slow reader receives only the newest level")
    }

    @Test func cancelledReaderEndsWatching() async {
        let source = PressureSource()
        let reader = Task {
            for await _ in source.pressure where source.readers == 0 { return false }
            return true
        }
        await source.waitForReaders(1)
        reader.cancel()
        #expect(await reader.value)
        await source.waitForReaders(0)
    }

    @Test func observerIsNotifiedUntilItsObservationIsReleased() async throws {
        let source = PressureSource()
        let (levels, continuation) = AsyncStream<MemoryPressure.Level>.makeStream()
        var observation: MemoryPressure.Observation? = source.pressure.observe { continuation.yield($0) }
        var iterator = levels.makeAsyncIterator()
        #expect(await iterator.next() == .normal)
        source.set(.critical)
        #expect(await iterator.next() == .critical)
        withExtendedLifetime(observation) {}
        observation = nil
        await source.waitForReaders(0)
    }

    @Test func monitorIsWatchedOnlyByReaders() async throws {
        let files = try PressureFiles()
        defer { withExtendedLifetime(files) {} }
        let (monitor, pressure) = (files.monitor, MemoryPressure(files.monitor))
        #expect(!monitor.isWatching)
        do {
            var levels = pressure.makeAsyncIterator()
            #expect(await levels.next() == .normal)
            #expect(monitor.isWatching)
        }
        #expect(!monitor.isWatching)
        var observation: MemoryPressure.Observation? = pressure.observe { _ in }
        #expect(monitor.isWatching)
        withExtendedLifetime(observation) {}
        observation = nil
        #expect(!monitor.isWatching)
    }

    @Test func eventsOfTheControlGroupChangeTheLevel() async throws {
        let files = try PressureFiles()
        var levels = MemoryPressure(files.monitor).makeAsyncIterator()
        #expect(await levels.next() == .normal)
        try files.write("oom_kill 1\n", to: files.events)
        #expect(await levels.next() == .critical)
    }

    @Test func supportNamesTheInterfaces() async throws {
        let files = try PressureFiles()
        let support = await MemoryPressure(files.monitor).support
        #expect(support.watched.map(\.kind) == [.events])
        #expect(support.watched.map(\.path) == [files.events])
        #expect(support.isWatched && support.description == "watches \(files.events)")
        #expect(support.missing.count == 2)
        #expect(!files.monitor.isWatching)
    }

    @Test func systemWithoutInterfacesIsNormal() async throws {
        let files = try PressureFiles(hasEvents: false)
        let pressure = MemoryPressure(files.monitor)
        var levels = pressure.makeAsyncIterator()
        #expect(await levels.next() == .normal)
        let support = await pressure.support
        #expect(!support.isWatched && support.missing.count == 3)
        #expect(
            support.description.hasPrefix(
                "not watched (\(files.root)/proc/pressure/memory: the kernel has no pressure stall information; "))
        // The sequence delivers no further level until the reader is cancelled.
        let reader = Task {
            var levels = pressure.makeAsyncIterator()
            return (await levels.next(), await levels.next())
        }
        reader.cancel()
        _ = await reader.value
    }

    @Test func sourceOfTheProgramIsReported() async {
        let support = await PressureSource().pressure.support
        #expect(support.watched.map(\.kind) == [.custom] && support.missing == [])
        #expect(support.description == "watches custom")
    }

    @Test func sharedPressureHasALevel() async {
        for await level in MemoryPressure.shared {
            #expect(MemoryPressure.Level.allCases.contains(level))
            break
        }
        let support = await MemoryPressure.shared.support
        #expect(support.isWatched || !support.missing.isEmpty)
    }

    @Test func levelsAreOrdered() {
        #expect(MemoryPressure.Level.allCases.sorted() == [.normal, .warning, .critical])
        #expect(MemoryPressure.Level.allCases.map(\.description) == ["normal", "warning", "critical"])
    }
}

/// A memory pressure that a test sets, and that counts the levels that its readers have handled.
final class PressureSource: Sendable {
    private struct Reader: Sendable {
        let newest = Newest<MemoryPressure.Level>()
        var received: MemoryPressure.Level?
        /// Whether the reader waits for the next level, so that it has handled those that it has received.
        var isWaiting = false
    }

    private struct State {
        var level = MemoryPressure.Level.normal
        var readers: [UInt64: Reader] = [:]
        var last: UInt64 = 0
    }

    /// Calls a function when the stream of a reader is released.
    private final class End: Sendable {
        private let end: @Sendable () -> Void
        init(_ end: @escaping @Sendable () -> Void) { self.end = end }
        deinit { end() }
    }

    private let state = Lock(State())
    private let signal = Signal()

    var readers: Int { state.withLock { $0.readers.count } }

    var pressure: MemoryPressure {
        MemoryPressure { [self] in
            let (reader, level) = (Reader(), state.withLock { $0.level })
            let number = state.withLock { state in
                state.last += 1
                state.readers[state.last] = reader
                return state.last
            }
            let end = End { [self] in
                state.withLock { $0.readers[number] = nil }
                signal.send()
            }
            reader.newest.send(level)
            signal.send()
            return AsyncStream { [self] in
                defer { withExtendedLifetime(end) {} }
                change(number) { $0.isWaiting = true }
                let next = await reader.newest.next()
                change(number) { ($0.received, $0.isWaiting) = (next, false) }
                return next
            }
        }
    }

    private func change(_ number: UInt64, _ body: (inout Reader) -> Void) {
        state.withLock { state in
            guard var reader = state.readers[number] else { return }
            body(&reader)
            state.readers[number] = reader
        }
        signal.send()
    }

    /// Changes the level; readers receive it later.
    func set(_ level: MemoryPressure.Level) {
        let readers = state.withLock { state in
            state.level = level
            return Array(state.readers.values)
        }
        for reader in readers { reader.newest.send(level) }
    }

    /// Changes the level, and waits until all readers, at least one, have handled it.
    func handle(_ level: MemoryPressure.Level) async {
        set(level)
        await wait { state in
            !state.readers.isEmpty && state.readers.values.allSatisfy { $0.received == level && $0.isWaiting }
        }
    }

    func waitForReaders(_ count: Int) async { await wait { $0.readers.count == count } }

    private func wait(until condition: (State) -> Bool) async {
        while true {
            let seen = signal.count
            if state.withLock({ condition($0) }) { return }
            guard await signal.wait(after: seen) else { return }
        }
    }
}

/// The files of a control group without pressure stall information, and a monitor that watches them.
final class PressureFiles: Sendable {
    let root = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-pressure-\(UUID())").path
    let monitor: MemoryMonitor
    var events: String { "\(root)/group/memory.events" }

    init(hasEvents: Bool = true) throws {
        var places = MemoryPlaces()
        places.proc = "\(root)/proc"
        places.variable = { _ in nil }
        monitor = MemoryMonitor(places)
        for folder in ["\(root)/proc/self", "\(root)/group"] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try write("0::/group\n", to: "\(root)/proc/self/cgroup")
        try write("1 2 0:3 / \(root) rw - cgroup2 none rw\n", to: "\(root)/proc/self/mountinfo")
        try write("", to: "\(root)/group/cgroup.type")
        if hasEvents { try write("oom_kill 0\n", to: events) }
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    /// Overwrites the start of a file, or creates it; the file is never empty in between, like those of the kernel.
    func write(_ text: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        try #require(Glibc.write(file, text, text.utf8.count) == text.utf8.count)
    }
}
