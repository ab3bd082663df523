// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import CurlewEngine

/// The time limits of a transfer as a table: which limit counts in which stage, and since when.
@Suite("Deadlines")
struct DeadlineTests {
    private static let second: UInt64 = 1_000_000_000
    private static let now = 1000 * second

    /// Each time at which a limit may begin to count, so that a deadline shows its beginning.
    private enum Since {
        static let started = now - 90 * second
        static let stage = now - 80 * second
        static let activity = now - 70 * second
        static let sent = now - 60 * second
        static let measured = now - 50 * second
    }

    enum Position: String, CaseIterable {
        case queued, leftQueue, resolving, connecting, sending, awaitingHead, receiving, complete
    }

    enum Pause: String, CaseIterable {
        case running, userPaused
        /// The reader is slow, or a bandwidth limit is exceeded.
        case heldBack
    }

    enum Limit: String, CaseIterable { case connect, head, idle, minimumRate, queue, total }

    private func facts(_ position: Position, _ pause: Pause) -> Deadlines.Facts {
        let stage: Deadlines.Stage =
            switch position {
            case .queued: .queued(since: Since.stage)
            case .leftQueue: .queued(since: nil)
            case .resolving: .resolving(since: Since.stage)
            case .connecting: .connecting(since: Since.stage)
            case .sending, .awaitingHead, .receiving, .complete: .connected
            }
        var facts = Deadlines.Facts(stage: stage, startedAt: Since.started)
        facts.isUserPaused = pause == .userPaused
        facts.isHeldBack = pause != .running
        facts.lastActivity = Since.activity
        if position != .awaitingHead { facts.measuredSince = Since.measured }
        if position != .sending { facts.sentAt = Since.sent }
        facts.isHeadComplete = position == .receiving || position == .complete
        if position == .complete { facts.responseCompleteAt = Self.now }
        return facts
    }

    /// Returns one limit; other tests of limits use it, too.
    static func limits(_ limit: Limit, of length: UInt64) -> TransferLimits {
        var limits = TransferLimits()
        switch limit {
        case .connect: limits.connect = length
        case .head: limits.head = length
        case .idle: limits.idle = length
        case .minimumRate: limits.minimumRate = (7, length)
        case .queue: limits.queue = length
        case .total: limits.total = length
        }
        return limits
    }

    /// The time since which a limit counts, by the rules; nil if it does not count, with whether it is checked later.
    private func rule(_ limit: Limit, _ position: Position, _ pause: Pause) -> (since: UInt64?, isChecked: Bool) {
        let isConnected = [.sending, .awaitingHead, .receiving, .complete].contains(position)
        let isOnWire = isConnected || position == .connecting
        switch limit {
        case .total: return (Since.started, true)
        case .queue: return position == .queued ? (Since.stage, true) : (nil, false)
        case .connect:
            return switch position {
            case .resolving: (Since.stage, true)
            case .connecting: (Since.stage + Deadlines.grace, true)
            default: (nil, false)
            }
        case .idle: return (isConnected && pause == .running ? Since.activity : nil, isOnWire && pause == .running)
        case .minimumRate:
            let isMeasured = isConnected && position != .awaitingHead && pause == .running
            return (isMeasured ? Since.measured : nil, isOnWire && pause == .running)
        case .head:
            let counts = position == .awaitingHead && pause != .userPaused
            let isAwaited = [.connecting, .sending, .awaitingHead].contains(position) && pause != .userPaused
            return (counts ? Since.sent : nil, isAwaited)
        }
    }

    @Test(arguments: Position.allCases, Pause.allCases)
    func limitsCountInTheirStage(_ position: Position, _ pause: Pause) {
        var facts = facts(position, pause)
        facts.responseCompleteAt = nil
        for limit in Limit.allCases {
            let length = 5 * Self.second
            if limit == .total { facts.remainingTotal = length } else { facts.remainingTotal = nil }
            let (at, due) = Deadlines.next(facts, Self.limits(limit, of: length), now: Self.now)
            let (since, isChecked) = rule(limit, position, pause)
            let expected = since.map { $0 + length } ?? (isChecked ? Self.now + length : Monotonic.never)
            #expect(at == expected, "\(limit)")
            let kind: Deadlines.Due =
                switch limit {
                case .connect: .limit(.connect)
                case .head: .limit(.head)
                case .idle: .limit(.idle)
                case .minimumRate: .limit(.slow(bytes: 7))
                case .queue: .queue
                case .total: .limit(.total)
                }
            #expect(due == (since == nil ? nil : kind), "\(limit)")
        }
    }

    @Test func earliestLimitIsDueFirst() {
        var limits = TransferLimits()
        limits.idle = 60 * Self.second
        limits.head = 55 * Self.second
        var facts = facts(.awaitingHead, .running)
        facts.remainingTotal = 600 * Self.second
        #expect(Deadlines.next(facts, limits, now: Self.now) == (Since.activity + 60 * Self.second, .limit(.idle)))
        facts.lastActivity = Self.now
        #expect(Deadlines.next(facts, limits, now: Self.now) == (Since.sent + 55 * Self.second, .limit(.head)))
        limits.head = nil
        facts.remainingTotal = 91 * Self.second
        #expect(Deadlines.next(facts, limits, now: Self.now) == (Self.now + Self.second, .limit(.total)))
    }

    @Test func transferWithoutLimitsHasNoDeadline() {
        for position in Position.allCases where position != .complete {
            let (at, due) = Deadlines.next(facts(position, .running), TransferLimits(), now: Self.now)
            #expect(at == Monotonic.never && due == nil)
        }
    }

    @Test func completeResponsesAndSilentConnectionsAreChecked() {
        var facts = facts(.complete, .running)
        let (at, due) = Deadlines.next(facts, TransferLimits(), now: Self.now)
        #expect(at == Self.now + Deadlines.grace && due == .answered)
        facts.pokeAt = Self.now
        #expect(Deadlines.next(facts, TransferLimits(), now: Self.now) == (Self.now, .silent))
    }

    @Test func queueTimeoutOfARestartedWaitCountsFromTheStartOfTheTransfer() {
        var facts = facts(.queued, .running)
        facts.startedAt = Self.now
        let (at, _) = Deadlines.next(facts, Self.limits(.queue, of: Self.second), now: Self.now)
        #expect(at == Self.now + Self.second)
    }
}
