// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

// Time limits: each transfer has an earliest deadline, and no transfer is checked before the first deadline of all.
extension CurlTransport {
    /// Schedules the sweep for the transfer's next deadline.
    func scheduleSweep(_ transfer: EngineTransfer) {
        sweepAt = min(sweepAt, max(deadline(of: transfer).at, sweptAt &+ CurlTransport.sweepInterval))
    }

    /// Schedules the sweep for a transfer that libcurl is about to start, without asking libcurl for its state.
    ///
    /// The limits of the head, of silence and of the rate cannot begin before now, so their lengths give a time before
    /// the deadline. The sweep at that time determines the exact deadline.
    func scheduleFirstSweep(_ transfer: EngineTransfer) {
        var first = Monotonic.never
        func look(at limit: UInt64?, since start: UInt64) { if let limit { first = min(first, start &+ limit) } }
        look(at: transfer.plan.limits.head, since: now)
        look(at: transfer.plan.limits.idle, since: now)
        look(at: transfer.plan.limits.minimumRate?.within, since: now)
        look(at: transfer.plan.limits.connect, since: transfer.loopState.connectingSince)
        if let total = transfer.plan.remainingTotal { look(at: total, since: transfer.startedAt) }
        sweepAt = min(sweepAt, max(first, sweptAt &+ CurlTransport.sweepInterval))
    }

    /// The minimum time between two sweeps, in nanoseconds, because each sweep checks all transfers.
    private static let sweepInterval: UInt64 = 5_000_000

    private func deadline(of transfer: EngineTransfer) -> (at: UInt64, due: Deadlines.Due?) {
        Deadlines.next(facts(about: transfer), transfer.plan.limits, now: now)
    }

    /// Collects the facts for the limits that the transfer has.
    private func facts(about transfer: EngineTransfer) -> Deadlines.Facts {
        var facts = Deadlines.Facts(
            stage: stage(of: transfer), startedAt: transfer.startedAt, remainingTotal: transfer.plan.remainingTotal)
        guard let handle = transfer.loopState.handle else { return facts }
        facts.isHeldBack = transfer.isHeldBack
        facts.isUserPaused = transfer.loopState.isUserPaused
        facts.isHeadComplete = transfer.loopState.isHeadComplete
        facts.lastActivity = transfer.loopState.lastActivity
        facts.responseCompleteAt = transfer.loopState.responseCompleteAt
        facts.pokeAt = pokeAt(transfer)
        guard case .connected = facts.stage else { return facts }
        let limits = transfer.plan.limits
        if limits.minimumRate != nil, !facts.isHeldBack { facts.measuredSince = measuredSince(transfer) }
        if limits.head != nil, !facts.isHeadComplete { facts.sentAt = sendingEnded(handle, transfer) }
        return facts
    }

    private func stage(of transfer: EngineTransfer) -> Deadlines.Stage {
        if let handle = transfer.loopState.handle {
            let isConnected = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0
            return isConnected ? .connected : .connecting(since: transfer.loopState.connectingSince)
        }
        if transfer.loopState.hasSlot { return .resolving(since: transfer.loopState.admittedAt) }
        return .queued(since: transfer.loopState.isInQueue ? transfer.loopState.inQueueSince : nil)
    }

    /// Returns the start of the measurement of the rate; nil while no bytes are pending that the peer could delay.
    private func measuredSince(_ transfer: EngineTransfer) -> UInt64? {
        let sends = transfer.isBodyPulled && transfer.loopState.bodySentAt == 0
        let isMeasured = transfer.loopState.isHeadComplete ? !detectEventStream(transfer) : sends
        guard isMeasured, !(sends && transfer.loopState.isStarved) else {
            transfer.loopState.measuredAt = 0
            return nil
        }
        if transfer.loopState.measuredAt < max(1, transfer.loopState.resumedAt) {
            transfer.loopState.measuredAt = now
            transfer.loopState.measured = moved(transfer)
        }
        return transfer.loopState.measuredAt
    }

    /// Returns whether the response is an event stream, which may be silent for long, and stores the result.
    private func detectEventStream(_ transfer: EngineTransfer) -> Bool {
        if let known = transfer.loopState.isEventStream { return known }
        let found = transfer.shared.withLock { $0.head?.isEventStream ?? false }
        transfer.loopState.isEventStream = found
        return found
    }

    /// Returns the time at which the whole request was sent; nil until then.
    private func sendingEnded(_ handle: EasyHandle, _ transfer: EngineTransfer) -> UInt64? {
        let ready = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T)
        guard ready > 0 else { return nil }
        let begun = transfer.loopState.launchedAt &+ UInt64(ready) &* 1000
        if transfer.isBodyPulled && transfer.loopState.bodySentAt == 0 { return nil }
        return max(begun, transfer.loopState.bodySentAt, transfer.loopState.resumedAt, transfer.loopState.sendingSeenAt)
    }

    /// Returns the body bytes moved in both directions, without those that are still in buffers of this machine.
    private func moved(_ transfer: EngineTransfer) -> Int64 { sent(transfer) + transfer.loopState.counters.received }

    /// Returns the number of bytes of the request body that have left this machine.
    ///
    /// libcurl requests 256 KiB of a long body at a time, and the kernel buffers megabytes. Over a slow network,
    /// sending these buffers takes minutes.
    private func sent(_ transfer: EngineTransfer) -> Int64 {
        guard transfer.isBodyPulled, let handle = transfer.loopState.handle,
            let connection = transfer.loopState.connection
        else {
            return transfer.loopState.counters.sent
        }
        let written = Int64(curlew_get_offset(handle.curl, CURLINFO_SIZE_UPLOAD_T))
        return written - (sockets.isUsed(connection) ? Int64(curlew_unsent(connection.descriptor)) : 0)
    }

    /// Returns whether bytes of a long body have left this machine since the last check; if so, the idle limit and the
    /// head limit start again.
    private func recordSent(_ transfer: EngineTransfer, _ now: UInt64) -> Bool {
        // A body that fits into the socket buffer was sent at once.
        guard transfer.isBodyPulled, transfer.loopState.counters.sent > 64 << 10 else { return false }
        let sent = sent(transfer)
        guard sent > transfer.loopState.sentSeen else { return false }
        transfer.loopState.sentSeen = sent
        transfer.loopState.sendingSeenAt = now
        transfer.loopState.lastActivity = now
        return true
    }

    /// Returns whether enough bytes moved since the last measurement, and starts the next measurement.
    private func measureRate(_ transfer: EngineTransfer, _ now: UInt64) -> Bool {
        let moved = moved(transfer)
        defer { (transfer.loopState.measuredAt, transfer.loopState.measured) = (now, moved) }
        return moved - transfer.loopState.measured >= transfer.plan.limits.minimumRate?.bytes ?? 0
    }

    /// Returns the time of the next check of a silent HTTP/2 connection by libcurl: early at first, then at growing
    /// intervals.
    ///
    /// libcurl 7.88 notices the end of a connection or stream only at its next call, and no event causes that call.
    private func pokeAt(_ transfer: EngineTransfer) -> UInt64? {
        guard let connection = transfer.loopState.connection, let origin = transfer.loopState.origin,
            origin.speaksHTTP2, sockets.version(of: connection) != .http1, !transfer.isHeldBack
        else { return nil }
        return CurlTransport.pokeAt(
            after: transfer.isBodyPulled ? 10_000_000 : 50_000_000, silentSince: transfer.loopState.lastActivity,
            last: transfer.loopState.pokedAt)
    }

    /// Returns the time of the next check, in nanoseconds: each interval is as long as all before it together, at most
    /// 5 s.
    static func pokeAt(after first: UInt64, silentSince start: UInt64, last: UInt64) -> UInt64 {
        guard last > start else { return start &+ first }
        return last &+ min(max(last - start, first), 5_000_000_000)
    }

    /// Ends the transfers whose deadlines have passed, and schedules the next sweep.
    func sweep(_ now: UInt64) {
        sweepAt = Monotonic.never
        sweptAt = now
        var late: [(EngineTransfer, Deadlines.Due)] = []
        for transfer in allTransfers {
            let (at, due) = deadline(of: transfer)
            if now >= at, let due { late.append((transfer, due)) } else { sweepAt = min(sweepAt, at) }
        }
        sweepAt = max(sweepAt, now &+ CurlTransport.sweepInterval)
        var reports: [ObjectIdentifier: EngineFailure.QueueReport] = [:]
        var silent: [SocketTable.Connection: CurlDomain] = [:]
        for (transfer, due) in late where transfer.outcome == nil {
            switch due {
            case .silent:
                transfer.loopState.pokedAt = now
                transfer.releaseUpload()
                if let connection = transfer.loopState.connection {
                    silent[connection] = transfer.loopState.handle?.domain
                }
                scheduleSweep(transfer)
            case .answered: if let handle = transfer.loopState.handle { end(handle, nil) }
            case .queue:
                if let origin = transfer.loopState.origin {
                    let known = reports[ObjectIdentifier(origin)] ?? report(on: origin)
                    reports[ObjectIdentifier(origin)] = known
                    remove(transfer, .queueTimedOut(known, after: transfer.plan.limits.queue ?? 0))
                }
            case .limit(.slow) where measureRate(transfer, now): scheduleSweep(transfer)
            case .limit(.idle) where recordSent(transfer, now): scheduleSweep(transfer)
            case .limit(.head) where recordSent(transfer, now): scheduleSweep(transfer)
            case .limit(let limit): remove(transfer, .timedOut(limit, after: transfer.plan.limits.length(of: limit)))
            }
        }
        // One call per connection is enough: libcurl then checks all of its streams.
        for (connection, domain) in silent { poke(connection, domain) }
    }
}
