// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The memory pressure of the machine and of the process's control group at one instant.
package struct MemoryState: Sendable, Hashable {
    package var level: MemoryLevel
    package var support: MemorySupport
}

/// The interfaces of the system that report memory pressure to this process.
package struct MemorySupport: Sendable, Hashable {
    package enum Kind: Sendable, Hashable, CaseIterable {
        /// The stall times of the machine.
        case machine
        /// The stall times of the process's control group.
        case controlGroup
        /// The events of the process's control group.
        case events
        /// The path that the service manager has named.
        case serviceManager
    }

    /// A watched interface.
    package struct Interface: Sendable, Hashable {
        package var kind: Kind
        package var path: String
    }

    package var watched: [Interface] = []
    /// The reasons why other interfaces are not watched, each with its path.
    package var missing: [String] = []

    /// Adds a reason, unless it is known.
    mutating func miss(_ reason: String) {
        if !missing.contains(reason) { missing.append(reason) }
    }
}

/// The files and variables of the system that a monitor of memory pressure reads.
package struct MemoryPlaces: Sendable {
    /// The directory of the proc file system; its `self/mountinfo` names the directory of control groups.
    package var proc = "/proc"
    /// Returns an environment variable; nil if it is unset.
    package var variable: @Sendable (String) -> String? = { TrustEnvironment.variable($0) }

    package init() {}
}

/// Notifies observers of the memory pressure, initially and after each change.
package final class MemoryMonitor: Sendable {
    /// The monitor of this machine, with one thread for the process.
    package static let shared = MemoryMonitor(MemoryPlaces())

    private let monitor: KernelMonitor<MemoryState>
    /// The reasons why the last source had no interface to watch.
    private let missing: Lock<[String]>

    package init(_ places: MemoryPlaces) {
        let missing = Lock([String]())
        let unknown = MemoryState(level: .normal, support: MemorySupport())
        monitor = KernelMonitor("curlew-memory", unknown: unknown) {
            let source = MemorySource(places)
            guard source.support.watched.isEmpty else { return source }
            missing.withLock { $0 = source.support.missing }
            return nil
        }
        self.missing = missing
    }

    /// Calls `notify` with the present state and after each change, on a thread of the monitor or of the caller.
    ///
    /// If no interface can be watched, `notify` is called once, with the level `normal` and the reasons.
    ///
    /// - Returns: The number for ``end(_:)``.
    package func observe(_ notify: @escaping @Sendable (MemoryState) -> Void) -> UInt64 {
        monitor.observe { [missing] state in
            var state = state
            if state.support == MemorySupport() {
                state.support.missing = missing.withLock { $0.isEmpty ? ["the system has started no thread"] : $0 }
            }
            notify(state)
        }
    }

    /// Removes an observer; a call to it that has begun may still run.
    package func end(_ number: UInt64) { monitor.end(number) }

    /// Returns the present state.
    package func state() async -> MemoryState {
        let (first, signal) = (Lock<MemoryState?>(nil), Signal())
        let seen = signal.count
        let number = observe { state in
            first.withLock { if $0 == nil { $0 = state } }
            signal.send()
        }
        await signal.waitUncancelled(after: seen)
        end(number)
        return first.withLock { $0 } ?? MemoryState(level: .normal, support: MemorySupport())
    }

    /// Whether the watching thread runs.
    package var isWatching: Bool { monitor.isWatching }

    /// The number of times that the watching threads woke up, for tests.
    package var wakeUps: UInt64 { monitor.wakeUps }
}
