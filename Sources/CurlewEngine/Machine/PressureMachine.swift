// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// How short memory is.
package enum MemoryLevel: Int, Sendable, Hashable, Comparable, CaseIterable {
    case normal, warning, critical

    package static func < (first: MemoryLevel, second: MemoryLevel) -> Bool { first.rawValue < second.rawValue }
}

/// Decides the level of memory pressure from the reports of the kernel.
///
/// A report raises the level at once. A level ends when its last report is older than ``hold``.
struct PressureMachine: Sendable, Equatable {
    /// An event that may change the level.
    enum Input: Sendable, Equatable {
        /// The kernel has reported a level; the level `normal` has no effect.
        case report(MemoryLevel)
        /// Time has passed.
        case time
    }

    /// The time in nanoseconds for which a report counts: five windows of a trigger, which fires at most once per
    /// window.
    static let hold: UInt64 = 10_000_000_000

    /// The level since the last input.
    private(set) var level = MemoryLevel.normal
    /// The time at which the last report of a warning no longer counts; 0 without a report.
    private var warningEnd: UInt64 = 0
    /// The time at which the last critical report no longer counts; 0 without a report.
    private var criticalEnd: UInt64 = 0

    /// The time at which the level falls without another report; `Monotonic.never` while it is normal.
    var deadline: UInt64 {
        switch level {
        case .normal: Monotonic.never
        case .warning: warningEnd
        case .critical: criticalEnd
        }
    }

    /// Handles an input at a time of the monotonic clock, in nanoseconds.
    ///
    /// - Returns: The new level if the input has changed it.
    mutating func handle(_ input: Input, at now: UInt64) -> MemoryLevel? {
        switch input {
        case .report(.warning): warningEnd = now &+ Self.hold
        case .report(.critical): criticalEnd = now &+ Self.hold
        case .report(.normal), .time: break
        }
        let old = level
        level = now < criticalEnd ? .critical : now < warningEnd ? .warning : .normal
        return level == old ? nil : level
    }
}
