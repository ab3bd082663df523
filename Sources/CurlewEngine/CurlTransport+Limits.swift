// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// What is due for a transfer.
private enum Due {
    case limit(EngineFailure.Limit)
    /// It has waited too long for a place.
    case queue
    /// A whole answer to a request whose body libcurl still wants to send.
    case answered
    /// An HTTP/2 connection that says nothing.
    case silent
}

// Time: each transfer's earliest deadline is known, and nobody is looked at before the first of all is due.
extension CurlTransport {
    /// Makes sure that the sweep comes when the transfer's next deadline is due.
    func scheduleSweep(_ transfer: EngineTransfer) {
        sweepAt = min(sweepAt, max(deadline(of: transfer).at, sweptAt &+ CurlTransport.sweepInterval))
    }

    /// Everybody is looked at in a sweep, so that there are not too many, in nanoseconds.
    private static let sweepInterval: UInt64 = 5_000_000

    /// When a transfer is late, and for which limit.
    ///
    /// What cannot be known yet is looked at again a limit later.
    private func deadline(of transfer: EngineTransfer) -> (at: UInt64, due: Due?) {
        var first: (at: UInt64, due: Due?) = (Monotonic.never, nil)
        func look(at time: UInt64, _ due: Due?) { if time < first.at { first = (time, due) } }
        func consider(_ at: UInt64, _ limit: EngineFailure.Limit?) { look(at: at, limit.map(Due.limit)) }
        if let total = transfer.plan.totalTimeout { consider(transfer.startedAt &+ total, .total) }
        guard let handle = transfer.wire.handle else {
            if transfer.wire.hasPlace {
                if let connect = transfer.plan.connectTimeout {
                    consider(transfer.wire.admittedAt &+ connect, .connect)
                }
            } else if let queue = transfer.plan.queueTimeout, transfer.wire.isInLine {
                look(at: max(transfer.startedAt, transfer.wire.inLineSince) &+ queue, .queue)
            }
            return first
        }
        if let time = nudgeAt(transfer) { look(at: time, .silent) }
        if let answered = transfer.wire.answeredAt { look(at: answered &+ CurlTransport.grace, .answered) }
        let isConnected = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0
        if !isConnected, let connect = transfer.plan.connectTimeout {
            // libcurl minds those that connect, a little earlier, and nobody minds those that it lets wait for them.
            consider(transfer.wire.connectingSince &+ connect &+ CurlTransport.grace, .connect)
        }
        if let idle = transfer.plan.idleTimeout, !transfer.isHeldBack {
            // Not connected yet: that is the connect timeout's business.
            consider((isConnected ? transfer.wire.lastActivity : now) &+ idle, isConnected ? .idle : nil)
        }
        if let slowest = transfer.plan.slowest, !transfer.isHeldBack {
            let since = isConnected ? measuredSince(transfer) : nil
            consider((since ?? now) &+ slowest.within, since == nil ? nil : .slow(bytes: slowest.bytes))
        }
        if let head = transfer.plan.headTimeout, !transfer.wire.isHeadComplete, !transfer.wire.isUserPaused {
            let sent = sendingEnded(handle, transfer)
            consider((sent ?? now) &+ head, sent == nil ? nil : .head)
        }
        return first
    }

    /// Since when the rate is measured; nil while nothing is on its way that the peer could be slow with.
    private func measuredSince(_ transfer: EngineTransfer) -> UInt64? {
        let sends = transfer.isBodyPulled && transfer.wire.bodySentAt == 0
        let isMeasured = transfer.wire.isHeadComplete ? !isEventStream(transfer) : sends
        guard isMeasured, !(sends && transfer.wire.isStarved) else {
            transfer.wire.measuredAt = 0
            return nil
        }
        if transfer.wire.measuredAt < max(1, transfer.wire.resumedAt) {
            transfer.wire.measuredAt = now
            transfer.wire.measured = moved(transfer)
        }
        return transfer.wire.measuredAt
    }

    /// Whether a response is a stream of events, which says little by nature; found out once, for those that take long.
    private func isEventStream(_ transfer: EngineTransfer) -> Bool {
        if let known = transfer.wire.isEventStream { return known }
        let found = transfer.shared.withLock { $0.head?.isEventStream ?? false }
        transfer.wire.isEventStream = found
        return found
    }

    /// When the whole request had been sent; nil while it has not.
    private func sendingEnded(_ handle: EasyHandle, _ transfer: EngineTransfer) -> UInt64? {
        let ready = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T)
        guard ready > 0 else { return nil }
        let begun = transfer.wire.launchedAt &+ UInt64(ready) &* 1000
        if transfer.isBodyPulled && transfer.wire.bodySentAt == 0 { return nil }
        return max(begun, transfer.wire.bodySentAt, transfer.wire.resumedAt, transfer.wire.sendingSeenAt)
    }

    /// How many bytes of bodies have moved both ways, without those that only wait in buffers of this machine.
    private func moved(_ transfer: EngineTransfer) -> Int64 { sent(transfer) + transfer.wire.counters.received }

    /// How many bytes of the request's body have left this machine.
    ///
    /// libcurl asks for 256 KiB of a long body at a time, and the system takes megabytes. Over a slow network both last for
    /// minutes.
    private func sent(_ transfer: EngineTransfer) -> Int64 {
        guard transfer.isBodyPulled, let handle = transfer.wire.handle, let connection = transfer.wire.connection else {
            return transfer.wire.counters.sent
        }
        let written = Int64(curlew_get_offset(handle.curl, CURLINFO_SIZE_UPLOAD_T))
        return written - (sockets.isUsed(connection) ? Int64(curlew_unsent(connection.descriptor)) : 0)
    }

    /// Whether bytes of a long body have left this machine since the last look; the idle limit, and that of the head, begin
    /// anew then.
    private func hasSent(_ transfer: EngineTransfer, _ now: UInt64) -> Bool {
        // A body that fits into the system's buffer was sent at once.
        guard transfer.isBodyPulled, transfer.wire.counters.sent > 64 << 10 else { return false }
        let sent = sent(transfer)
        guard sent > transfer.wire.sentSeen else { return false }
        transfer.wire.sentSeen = sent
        transfer.wire.sendingSeenAt = now
        transfer.wire.lastActivity = now
        return true
    }

    /// Whether too little has moved since the rate was last measured; it is measured anew.
    private func isTooSlow(_ transfer: EngineTransfer, _ now: UInt64) -> Bool {
        let moved = moved(transfer)
        defer { (transfer.wire.measuredAt, transfer.wire.measured) = (now, moved) }
        return moved - transfer.wire.measured < transfer.plan.slowest?.bytes ?? 0
    }

    /// How long libcurl may take to notice that an answer is whole before it is ended for it, in nanoseconds.
    private static let grace: UInt64 = 50_000_000

    /// When libcurl is made to look at a silent HTTP/2 connection: soon, then ever more seldom.
    ///
    /// libcurl 7.88 finds out that a connection or stream has ended when it is called once more, and nothing calls it.
    private func nudgeAt(_ transfer: EngineTransfer) -> UInt64? {
        guard let connection = transfer.wire.connection, let origin = transfer.wire.origin,
            origin.speaksHTTP2, sockets.version(of: connection) != .http1, !transfer.isHeldBack
        else { return nil }
        return CurlTransport.nudgeAt(
            after: transfer.isBodyPulled ? 10_000_000 : 50_000_000, silentSince: transfer.wire.lastActivity,
            last: transfer.wire.nudgedAt)
    }

    /// When to look again at what was last looked at, or never, in nanoseconds: after as long again, and 5 s at most.
    static func nudgeAt(after first: UInt64, silentSince start: UInt64, last: UInt64) -> UInt64 {
        guard last > start else { return start &+ first }
        return last &+ min(max(last - start, first), 5_000_000_000)
    }

    /// Ends what is late, and finds out when to look again.
    func sweep(_ now: UInt64) {
        sweepAt = Monotonic.never
        sweptAt = now
        var late: [(EngineTransfer, Due)] = []
        for transfer in everyone {
            let (at, due) = deadline(of: transfer)
            if now >= at, let due { late.append((transfer, due)) } else { sweepAt = min(sweepAt, at) }
        }
        sweepAt = max(sweepAt, now &+ CurlTransport.sweepInterval)
        var reports: [ObjectIdentifier: EngineFailure.QueueReport] = [:]
        var silent: [SocketTable.Connection: CurlDomain] = [:]
        for (transfer, due) in late where transfer.outcome == nil {
            switch due {
            case .silent:
                transfer.wire.nudgedAt = now
                transfer.releaseUpload()
                if let connection = transfer.wire.connection { silent[connection] = transfer.wire.handle?.domain }
                scheduleSweep(transfer)
            case .answered: if let handle = transfer.wire.handle { end(handle, nil) }
            case .queue:
                if let origin = transfer.wire.origin {
                    let known = reports[ObjectIdentifier(origin)] ?? report(on: origin)
                    reports[ObjectIdentifier(origin)] = known
                    remove(transfer, .queueTimedOut(known, after: transfer.plan.queueTimeout ?? 0))
                }
            case .limit(.slow) where !isTooSlow(transfer, now): scheduleSweep(transfer)
            case .limit(.idle) where hasSent(transfer, now): scheduleSweep(transfer)
            case .limit(.head) where hasSent(transfer, now): scheduleSweep(transfer)
            case .limit(let limit): remove(transfer, .timedOut(limit, after: transfer.plan.length(of: limit)))
            }
        }
        // Once for all streams of a connection, since libcurl then looks at each of them.
        for (connection, domain) in silent { nudge(connection, domain) }
    }
}
