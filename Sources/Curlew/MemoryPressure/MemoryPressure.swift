// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// MemoryPressure reports when the machine or the control group of the process is short of memory. Caches then release
// memory.

internal import CurlewEngine
internal import CurlewSupport

/// A sequence of memory pressure levels: the present level at once, then the newest level after each change.
///
/// The kernel reports pressure for the machine and for the control group (cgroup v2) of the process, such as that of a
/// container. A report raises the level at once; a level ends 10 seconds after its last report. Without an earlier
/// reader, the first level is `normal`. A level that lasts is delivered once.
///
/// One thread of the process waits for reports of the kernel while there are readers, or caches that have stored a
/// response in memory or loaded a dictionary. Otherwise no thread runs. Since Linux 6.5, the process needs no
/// privileges.
///
/// The sequence does not end by itself; leave the loop or cancel its task. Any number of tasks may read it.
///
/// ```swift
/// for await level in MemoryPressure.shared where level >= .warning {
///     thumbnails.removeAll()
/// }
/// ```
public struct MemoryPressure: AsyncSequence, Sendable {
    /// The type of the elements.
    public typealias Element = Level
    /// The type of the errors: the sequence never fails.
    public typealias Failure = Never

    /// How short memory is; a higher level compares as greater.
    public enum Level: Int, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
        /// The kernel reports no pressure, or the system has no interface that reports it.
        case normal
        /// Tasks of the system wait for memory: release data that is easy to get again.
        case warning
        /// All tasks of the machine or of the control group wait for memory, an allocation failed, or the kernel killed
        /// a process: release all unneeded data.
        case critical

        /// The name of the case, such as "warning".
        public var description: String {
            switch self {
            case .normal: "normal"
            case .warning: "warning"
            case .critical: "critical"
            }
        }

        /// Whether the first level means less pressure than the second level.
        public static func < (first: Level, second: Level) -> Bool { first.rawValue < second.rawValue }
    }

    /// The interfaces of the system that report pressure, and the reasons why others do not.
    public struct Support: Sendable, Hashable, CustomStringConvertible {
        /// A kind of interface.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The stall times of the machine, in which tasks wait for memory (`/proc/pressure/memory`).
            case machine
            /// The stall times of the control group of the process (`memory.pressure`).
            case controlGroup
            /// The events of the control group: reached limits, failed allocations and killed processes
            /// (`memory.events`).
            case events
            /// The path that systemd passes to a service in the environment variable `MEMORY_PRESSURE_WATCH`.
            case serviceManager
            /// A source of levels that the program has provided.
            case custom
        }

        /// A watched interface.
        public struct Interface: Sendable, Hashable {
            /// The kind of the interface.
            public let kind: Kind
            /// The path of the file or socket; empty for `custom`.
            public let path: String
        }

        /// The watched interfaces; while the array is empty, the level is `normal`.
        public let watched: [Interface]
        /// The reasons why other interfaces are not watched, each with its path.
        public let missing: [String]

        /// Whether an interface is watched.
        public var isWatched: Bool { !watched.isEmpty }

        /// The watched paths, or the reasons why nothing is watched.
        public var description: String {
            if watched.isEmpty { return "not watched (\(missing.joined(separator: "; ")))" }
            return "watches " + watched.map { $0.path.isEmpty ? "\($0.kind)" : $0.path }.joined(separator: ", ")
        }
    }

    private enum Origin: Sendable {
        case monitor(MemoryMonitor)
        case levels(@Sendable () -> AsyncStream<Level>)
    }

    /// The memory pressure of this machine and of the control group of this process.
    public static let shared = MemoryPressure(.shared)

    private let origin: Origin

    /// Creates a sequence from another source of levels, such as a test.
    ///
    /// - Parameter levels: Returns the stream of one reader, which begins with the present level. Called for each
    ///   iterator and for each cache that watches the pressure, on any thread. A stream with the buffering policy
    ///   `.bufferingNewest(1)` delivers only the newest level to a slow reader. The end of the stream ends the
    ///   sequence.
    public init(_ levels: @escaping @Sendable () -> AsyncStream<Level>) { origin = .levels(levels) }

    init(_ monitor: MemoryMonitor) { origin = .monitor(monitor) }

    /// Starts watching; the end of the iterator or the cancellation of its task stops watching.
    public func makeAsyncIterator() -> AsyncStream<Level>.Iterator {
        switch origin {
        case .levels(let levels): levels().makeAsyncIterator()
        case .monitor(let monitor):
            AsyncStream.newest { newest in
                let number = monitor.observe { newest.send(Level($0.level)) }
                return { monitor.end(number) }
            }.makeAsyncIterator()
        }
    }

    /// The interfaces that report pressure to this process.
    ///
    /// Without a reader, the monitor opens the interfaces for this value and closes them again.
    public var support: Support {
        get async {
            switch origin {
            case .levels: Support(watched: [Support.Interface(kind: .custom, path: "")], missing: [])
            case .monitor(let monitor): Support(await monitor.state().support)
            }
        }
    }

    // MARK: Observers

    /// An observer that is notified until its observation is released.
    package final class Observation: Sendable {
        private let end: @Sendable () -> Void

        fileprivate init(_ end: @escaping @Sendable () -> Void) { self.end = end }

        deinit { end() }
    }

    /// Calls `notify` with the present level and after each change, for caches that have no task of their own.
    ///
    /// - Parameter notify: Called on a thread of the monitor, or in a task for a source of the program; the first call
    ///   may precede the return of this method. Must return quickly. A call that has begun when the observation is
    ///   released still runs.
    /// - Returns: The observation; releasing it ends the calls.
    package func observe(_ notify: @escaping @Sendable (Level) -> Void) -> Observation {
        switch origin {
        case .levels(let levels):
            let task = Task {
                for await level in levels() { notify(level) }
            }
            return Observation { task.cancel() }
        case .monitor(let monitor):
            let number = monitor.observe { notify(Level($0.level)) }
            return Observation { monitor.end(number) }
        }
    }
}

extension MemoryPressure.Level {
    fileprivate init(_ level: MemoryLevel) {
        switch level {
        case .normal: self = .normal
        case .warning: self = .warning
        case .critical: self = .critical
        }
    }
}

extension MemoryPressure.Support {
    fileprivate init(_ support: MemorySupport) {
        watched = support.watched.map { Interface(kind: Kind($0.kind), path: $0.path) }
        missing = support.missing
    }
}

extension MemoryPressure.Support.Kind {
    fileprivate init(_ kind: MemorySupport.Kind) {
        switch kind {
        case .machine: self = .machine
        case .controlGroup: self = .controlGroup
        case .events: self = .events
        case .serviceManager: self = .serviceManager
        }
    }
}
