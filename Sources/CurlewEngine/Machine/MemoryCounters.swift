// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The counters of a control group: its `memory.events`, and the stall time of its `memory.pressure`.
struct MemoryCounters: Sendable, Equatable {
    /// The number of times that the kernel has slowed the group down above `memory.high`.
    var high: UInt64 = 0
    /// The number of times that the group was about to exceed `memory.max`.
    var max: UInt64 = 0
    /// The number of times that an allocation was about to fail.
    var oom: UInt64 = 0
    /// The number of processes that the kernel has killed.
    var oomKill: UInt64 = 0
    /// The microseconds in which at least one task of the group has waited for memory; nil if the kernel does not
    /// count them.
    var stalled: UInt64?

    /// Reads the texts of the files; a counter that is missing or damaged is 0.
    init(events: String, pressure: String?) {
        for line in events.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 2, let value = UInt64(fields[1]) else { continue }
            switch fields[0] {
            case "high": high = value
            case "max": max = value
            case "oom": oom = value
            case "oom_kill": oomKill = value
            default: continue
            }
        }
        stalled = pressure.flatMap { Self.stalled($0) }
    }

    /// Returns the total of the line "some" of a pressure file, in microseconds.
    private static func stalled(_ text: String) -> UInt64? {
        let fields = text.split(separator: "\n").first { $0.hasPrefix("some ") }?.split(separator: " ") ?? []
        return fields.first { $0.hasPrefix("total=") }.flatMap { UInt64($0.dropFirst("total=".count)) }
    }

    /// Whether an event was counted since earlier counters.
    func hasEvents(since earlier: MemoryCounters) -> Bool {
        high > earlier.high || max > earlier.max || oom > earlier.oom || oomKill > earlier.oomKill
    }

    /// Replaces the counters with newer ones; a counter never falls, not even if a file was damaged.
    mutating func advance(to newer: MemoryCounters) {
        (high, max) = (Swift.max(high, newer.high), Swift.max(max, newer.max))
        (oom, oomKill) = (Swift.max(oom, newer.oom), Swift.max(oomKill, newer.oomKill))
        stalled = newer.stalled
    }

    /// Returns the level that the change since earlier counters reports.
    ///
    /// The page cache fills a group, and each further read of a file then raises `max` without a shortage of memory. A
    /// reached limit therefore counts only together with a stall time that would fire the warning trigger, if the
    /// kernel counts stall times.
    ///
    /// - Parameter elapsed: The time between both readings in nanoseconds.
    func level(since earlier: MemoryCounters, elapsed: UInt64) -> MemoryLevel {
        if oom > earlier.oom || oomKill > earlier.oomKill { return .critical }
        guard high > earlier.high || max > earlier.max else { return .normal }
        guard let stalled, let before = earlier.stalled, stalled >= before else {
            return high > earlier.high ? .warning : .normal
        }
        let (share, window) = (MemoryTrigger.warning.stall, MemoryTrigger.window)
        return Double(stalled - before) * Double(window) >= Double(share) * Double(elapsed / 1000) ? .warning : .normal
    }
}

/// A trigger of the kernel's pressure stall information (accounting/psi in the documentation of Linux).
struct MemoryTrigger: Sendable, Equatable {
    /// The length of the window in microseconds; without privileges, the kernel requires a multiple of two seconds.
    static let window: UInt64 = 2_000_000

    /// The kernel's word for the tasks that wait: `some` or `full`.
    let tasks: String
    /// The microseconds of a window that fire the trigger.
    let stall: UInt64
    let level: MemoryLevel

    /// A warning needs less time than in systemd, whose default is a tenth, so that caches shrink before other programs
    /// react.
    static let warning = MemoryTrigger(tasks: "some", stall: 150_000, level: .warning)
    /// Memory is critical when no task makes progress during a twentieth of the window.
    static let critical = MemoryTrigger(tasks: "full", stall: 100_000, level: .critical)

    /// The bytes to write; the kernel overwrites the last one.
    var bytes: [UInt8] { Array("\(tasks) \(stall) \(Self.window)".utf8) + [0] }
}
