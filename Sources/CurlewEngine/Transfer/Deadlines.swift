// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The rules for the time limits of a transfer: a pure function of facts, which each transport supplies.
enum Deadlines {
    /// The event at a deadline.
    enum Due: Equatable {
        /// The transfer has exceeded a limit.
        case limit(TransferLimits.Kind)
        /// The transfer has waited too long for a slot.
        case queue
        /// The response is complete, and libcurl still sends the request body.
        case answered
        /// The HTTP/2 connection is silent.
        case silent
    }

    /// The stage of a transfer, with the time at which the limit of that stage began to count.
    enum Stage {
        /// The transfer waits for a slot; nil while the user keeps it out of the queue.
        case queued(since: UInt64?)
        /// The transfer has a slot, and its host name is looked up.
        case resolving(since: UInt64)
        case connecting(since: UInt64)
        case connected
    }

    /// The facts about a transfer that its deadlines depend on.
    struct Facts {
        var stage: Stage
        /// The start of the transfer, and the part of the total limit that was left then.
        var startedAt: UInt64
        var remainingTotal: UInt64?
        /// Whether the user, the reader or a bandwidth limit causes the silence of the connection.
        var isHeldBack = false
        var isUserPaused = false
        var isHeadComplete = false
        var lastActivity: UInt64 = 0
        /// The time at which the whole request was sent; nil before.
        var sentAt: UInt64?
        /// The start of the measurement of the rate; nil while no bytes are pending that the peer could delay.
        var measuredSince: UInt64?
        /// The time at which the response and the handed-over body were complete.
        var responseCompleteAt: UInt64?
        /// The time of the next check of a silent connection.
        var pokeAt: UInt64?
    }

    /// Nanoseconds that the engine waits for libcurl to report a complete response or a connect timeout.
    static let grace: UInt64 = 50_000_000

    /// Returns the next deadline of a transfer, and what is due then.
    ///
    /// A limit that has not started to count is checked again after its full length, and nothing is due then.
    static func next(_ facts: Facts, _ limits: TransferLimits, now: UInt64) -> (at: UInt64, due: Due?) {
        var first: (at: UInt64, due: Due?) = (Monotonic.never, nil)
        func look(at time: UInt64, _ due: Due?) { if time < first.at { first = (time, due) } }
        func count(_ limit: UInt64, since start: UInt64?, _ kind: TransferLimits.Kind) {
            look(at: (start ?? now) &+ limit, start == nil ? nil : .limit(kind))
        }
        if let total = facts.remainingTotal { count(total, since: facts.startedAt, .total) }
        let isConnected: Bool
        switch facts.stage {
        case .queued(let since):
            if let queue = limits.queue, let since { look(at: max(facts.startedAt, since) &+ queue, .queue) }
            return first
        case .resolving(let since):
            if let connect = limits.connect { count(connect, since: since, .connect) }
            return first
        case .connecting(let since):
            isConnected = false
            // libcurl applies the timeout to connecting transfers, slightly earlier, but not to transfers that wait for
            // a shared connection.
            if let connect = limits.connect { count(connect &+ grace, since: since, .connect) }
        case .connected: isConnected = true
        }
        if let time = facts.pokeAt { look(at: time, .silent) }
        if let complete = facts.responseCompleteAt { look(at: complete &+ grace, .answered) }
        if let idle = limits.idle, !facts.isHeldBack {
            // The idle timeout does not count before the connection is made; the connect timeout applies until then.
            count(idle, since: isConnected ? facts.lastActivity : nil, .idle)
        }
        if let rate = limits.minimumRate, !facts.isHeldBack {
            count(rate.within, since: isConnected ? facts.measuredSince : nil, .slow(bytes: rate.bytes))
        }
        if let head = limits.head, !facts.isHeadComplete, !facts.isUserPaused {
            count(head, since: isConnected ? facts.sentAt : nil, .head)
        }
        return first
    }
}
