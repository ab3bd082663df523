// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

// Admission: slots per origin, a limit of connections for all origins, and look-ups before connections.
extension CurlTransport {
    package func start(_ transfer: EngineTransfer) {
        guard let watching = transfer.watching else { return }
        // The clock of the turn may be older than the start of the transfer.
        transfer.loopState.lastActivity = max(now, watching.startedAt)
        transfer.loopState.priority = transfer.plan.priority
        guard let url = origins.url(for: transfer.plan.target) else {
            let text = "libcurl rejects the URL"
            return fail(transfer, .curl(code: CURLE_URL_MALFORMAT.rawValue, text: text), .preparing)
        }
        transfer.loopState.origin = url.origin
        transfer.loopState.observerState = nil
        if watching.observer != nil || deliveries.observer != nil {
            transfer.setObservers(own: watching.observer, common: deliveries.observer, isPaused: false)
        }
        transfer.send(.queued)
        transfer.sendPauseEvent()
        // Transfers that already wait at the origin are admitted first.
        if url.origin.waiting == 0 && hasFreeSlot(for: transfer, at: url.origin) && admit(transfer, url) { return }
        if transfer.outcome == nil {
            queue(transfer, url.origin)
            admitReady()
        }
    }

    // MARK: Slots

    /// Returns the number of transfers that an origin runs at once: one per connection, unless they can share
    /// connections.
    func slots(at origin: Origin) -> Int {
        let canShare = origin.isSecure || sharesPlainHTTP2
        if origin.isShared || limits.version == .http2PriorKnowledge && canShare { return limits.sharedSlotsPerHost }
        // Before the origin is known to speak HTTP/2, libcurl puts transfers on the first connection without counting
        // them.
        let mayShare = origin.isSecure && !origin.isKnown && limits.version.isNegotiated
        return mayShare ? min(limits.slotsPerHost, limits.streamsPerConnection) : limits.slotsPerHost
    }

    private func hasFreeSlot(for transfer: EngineTransfer, at origin: Origin) -> Bool {
        guard isAdmissible(transfer, at: origin) else { return false }
        let more = origin.more(for: transfer)
        return more == 0 || demand + more <= limits.connections
    }

    /// Whether the limits of the origin itself allow another transfer.
    private func isAdmissible(_ transfer: EngineTransfer, at origin: Origin) -> Bool {
        guard origin.active < slots(at: origin) else { return false }
        guard origin.isShared && !transfer.isExclusive else {
            // The origin has no transfer whose connection this one could share.
            let mustConnect = transfer.isExclusive || origin.active == origin.exclusive
            return !mustConnect || origin.connections < limits.connectionsPerHost
        }
        switch origin.sharing {
        case .joins: return true
        case .opens: return origin.connections < limits.connectionsPerHost
        case .waits: return false
        }
    }

    /// Changes the counts of an origin's transfers and updates the number of connections that all origins need.
    func recount(_ origin: Origin, _ change: () -> Void) {
        change()
        demand -= origin.counted
        origin.counted = origin.connections
        demand += origin.counted
    }

    private func takeSlot(_ transfer: EngineTransfer, at origin: Origin) {
        recount(origin) {
            if origin.isShared, !transfer.isExclusive, origin.sharing == .opens {
                transfer.loopState.opensConnection = true
                origin.opening += 1
            }
            origin.active += 1
            if transfer.isExclusive { origin.exclusive += 1 }
        }
        transfer.loopState.hasSlot = true
        transfer.loopState.admittedAt = now
    }

    /// Releases the transfer's slot, if it has one, and admits the next waiting transfer.
    func releaseSlot(_ transfer: EngineTransfer) {
        guard transfer.loopState.hasSlot, let origin = transfer.loopState.origin else { return }
        transfer.loopState.hasSlot = false
        recount(origin) {
            origin.forgetOpening(transfer)
            origin.active -= 1
            if transfer.isExclusive { origin.exclusive -= 1 }
        }
        if !origin.queue.isEmpty { ready.nominate(origin) }
        if !ready.isEmpty { admitReady() }
    }

    func queue(_ transfer: EngineTransfer, _ origin: Origin) {
        lastSequenceNumber += 1
        if transfer.loopState.sequenceNumber == 0 { transfer.loopState.sequenceNumber = lastSequenceNumber }
        transfer.loopState.priority = transfer.priorityNow
        waiting[transfer.id] = transfer
        defer { scheduleSweep(transfer) }
        // A paused transfer joins the queue when it is resumed.
        if transfer.wantsPause { return }
        if !transfer.loopState.isInQueue {
            transfer.loopState.isInQueue = true
            transfer.loopState.inQueueSince = now
            origin.waiting += 1
        }
        origin.queue.join(
            transfer, priority: transfer.loopState.priority, sequenceNumber: transfer.loopState.sequenceNumber)
        compact(origin)
        if origin.active < slots(at: origin) { ready.nominate(origin) }
    }

    func leaveQueue(_ transfer: EngineTransfer, _ origin: Origin) {
        waiting[transfer.id] = nil
        suspendWaiting(transfer, origin)
    }

    /// Removes a transfer from the order of admission, so that the transfers behind it can pass; a paused transfer
    /// keeps waiting.
    func suspendWaiting(_ transfer: EngineTransfer, _ origin: Origin) {
        guard transfer.loopState.isInQueue else { return }
        transfer.loopState.isInQueue = false
        origin.waiting -= 1
        // The removed transfer may have waited for more connections than the transfers behind it need.
        if origin.active < slots(at: origin) { ready.nominate(origin) }
    }

    /// Compacts the queue of an origin once most of its entries are stale or duplicates.
    func compact(_ origin: Origin) {
        guard origin.queue.count > 16, origin.queue.count > 2 * origin.waiting else { return }
        var kept: Set<UInt64> = []
        origin.queue.removeAll {
            !$0.loopState.isInQueue || $1 != $0.loopState.priority || !kept.insert($0.id).inserted
        }
    }

    /// Admits waiting transfers of all origins, in order, while there are free slots.
    ///
    /// An origin whose own slots are all in use becomes a candidate again when one of them is released.
    func admitReady() {
        // A failed admission releases its slot and calls this method again; the outer loop then continues with that
        // slot.
        guard !isAdmitting else { return }
        isAdmitting = true
        while let origin = ready.next(connectionsLeft: limits.connections - demand) {
            guard let transfer = origin.first()?.element, isAdmissible(transfer, at: origin) else { continue }
            if hasFreeSlot(for: transfer, at: origin) {
                origin.queue.next()
                if let url = origins.url(for: transfer.plan.target) {
                    // A paused transfer keeps its sequence number, and joins the queue again when it is resumed.
                    if admit(transfer, url) { leaveQueue(transfer, origin) } else { suspendWaiting(transfer, origin) }
                } else {
                    leaveQueue(transfer, origin)
                    fail(transfer, .noResources(errno: ENOMEM), .queued)
                }
            }
            ready.nominate(origin)
        }
        isAdmitting = false
    }

    /// Returns the load of an origin, for transfers that stop waiting for a slot there.
    func report(on origin: Origin) -> EngineFailure.QueueReport {
        let holders = (inUse.compactMap(\.transfer) + Array(resolving.values)).filter { $0.loopState.origin === origin }
        let oldest = holders.min { $0.loopState.admittedAt < $1.loopState.admittedAt }
        return EngineFailure.QueueReport(
            host: origin.host, active: holders.count, slots: slots(at: origin), waiting: origin.waiting,
            connections: demand,
            connectionLimit: limits.connections,
            oldestAge: oldest.map { now &- min($0.loopState.admittedAt, now) } ?? 0,
            oldestLabel: oldest?.plan.label)
    }

    // MARK: Starting transfers

    /// Gives a transfer a slot and starts it; returns false if the transfer is paused or has ended.
    private func admit(_ transfer: EngineTransfer, _ url: ParsedURL) -> Bool {
        guard let collects = transfer.tryAdmission() else { return false }
        // The transfer may have been resumed a moment ago.
        transfer.sendPauseEvent()
        let origin = url.origin
        takeSlot(transfer, at: origin)
        assert(transfer.loopState.collected == nil, "the memory of a collected body would leak")
        if collects { transfer.loopState.collected = CollectedBody() }
        if origin.lookUps.isEmpty || resolveAddresses(transfer, origin) { launch(transfer, url) }
        return true
    }

    private func launch(_ transfer: EngineTransfer, _ url: ParsedURL) {
        transfer.loopState.launchedAt = now
        transfer.loopState.lastActivity = max(now, transfer.loopState.lastActivity)
        if !transfer.plan.isRetriable { sockets.closeStale(of: url.origin, after: limits.staleAfter) }
        guard let (domain, isWithoutIdle) = domain(for: transfer, at: url.origin) else {
            return fail(transfer, .noResources(errno: ENOMEM), .preparing)
        }
        // With this fact, libcurl need not search all of its connections for an idle one.
        transfer.loopState.hasNoIdleConnection = isWithoutIdle
        guard let handle = domain.takeHandle(), handle.apply(transfer, url: url, on: self) else {
            return fail(transfer, .noResources(errno: ENOMEM), .preparing)
        }
        url.origin.count(-1, in: domain.number)
        transfer.loopState.handle = handle
        transfer.loopState.deliveries = deliveries
        handle.transfer = transfer
        handle.index = inUse.count
        inUse.append(handle)
        domain.active += 1
        domain.lastUsed = now
        transfer.send(.resolved)
        add(handle)
        if transfer.loopState.handle != nil { scheduleFirstSweep(transfer) }
    }

    /// Adds a handle to its multi handle; libcurl starts the transfer with the next call.
    func add(_ handle: EasyHandle) {
        let code = curl_multi_add_handle(handle.domain.multi, handle.curl)
        guard code != CURLM_OK else { return }
        let text = String(cString: curl_multi_strerror(code))
        end(handle, EngineFailure(.curl(code: CURLE_FAILED_INIT.rawValue, text: text), phase: .preparing))
    }

    // MARK: Look-ups

    /// Sets the addresses of the hosts; returns false if the transfer waits for a look-up or has failed.
    private func resolveAddresses(_ transfer: EngineTransfer, _ origin: Origin) -> Bool {
        for host in origin.lookUps where !resolveAddresses(of: host, for: transfer, origin) { return false }
        return true
    }

    private func resolveAddresses(
        of peer: Origin.Peer, for transfer: EngineTransfer, _ origin: Origin
    ) -> Bool {
        let host = peer.host
        if let name = names.addresses(of: host, now: now) {
            // libcurl would look up a name without addresses by itself.
            guard !name.endpoints(of: peer, at: origin).isEmpty else {
                fail(transfer, .cannotResolve(host: host, text: "the name has no address for this port"), .resolving)
                return false
            }
            transfer.loopState.setAddresses(name, of: peer, at: origin)
            return true
        }
        let failure = names.failure(of: host, now: now)
        // A transfer over an open connection needs no address. If that connection turns out to be dead, libcurl still
        // needs addresses; without them it would start a resolver thread for each transfer.
        let isNew = transfer.isExclusive || transfer.loopState.isFresh
        let mayReuse = !isNew && origin.sockets >= (origin.isShared ? 1 : origin.active)
        if mayReuse, let last = names.lastAddresses(of: host, now: now),
            !last.endpoints(of: peer, at: origin).isEmpty
        {
            transfer.loopState.setAddresses(last, of: peer, at: origin)
            if failure == nil { beginLookUp(host) }
            return true
        }
        if let failure {
            fail(transfer, .cannotResolve(host: host, text: failure), .resolving)
            return false
        }
        resolving[transfer.id] = transfer
        beginLookUp(host)
        names.searches[host]?.waiting.append(transfer)
        scheduleSweep(transfer)
        return false
    }

    private func beginLookUp(_ host: String) {
        guard names.searches[host] == nil else { return }
        names.searches[host] = NameCache.Search()
        // The callback holds the loop until the look-up ends or is withdrawn. A weak reference would slow down every
        // retain and release of the loop.
        let loop = loop
        let requestID = limits.resolver.find(host, for: names.session) { outcome in
            loop.call { ($0 as? CurlTransport)?.found(host, outcome) }
        }
        names.searches[host]?.requestID = requestID
    }

    private func found(_ host: String, _ outcome: Resolver.Outcome) {
        guard let search = names.searches.removeValue(forKey: host) else { return }
        names.learn(host, outcome, now: now)
        for transfer in search.waiting where resolving.removeValue(forKey: transfer.id) != nil {
            switch outcome {
            case .failure(.noThread(let errno)): fail(transfer, .noResources(errno: errno), .resolving)
            case .failure(.unknown(let text)): fail(transfer, .cannotResolve(host: host, text: text), .resolving)
            case .success:
                guard let origin = transfer.loopState.origin, resolveAddresses(transfer, origin) else { continue }
                guard let url = origins.url(for: transfer.plan.target) else {
                    fail(transfer, .noResources(errno: ENOMEM), .resolving)
                    continue
                }
                launch(transfer, url)
                // Apply changes that were requested during the look-up.
                if transfer.loopState.handle != nil { adjust(transfer) }
            }
        }
    }

    /// Removes a transfer from the look-up it waits for.
    func withdraw(_ transfer: EngineTransfer) {
        guard resolving.removeValue(forKey: transfer.id) != nil, let origin = transfer.loopState.origin else { return }
        for host in origin.lookUps.map(\.host) {
            guard let search = names.searches[host], search.waiting.contains(where: { $0 === transfer }) else {
                continue
            }
            names.searches[host]?.waiting.removeAll { $0 === transfer }
            guard names.searches[host]?.waiting.isEmpty == true else { continue }
            names.searches[host] = nil
            if let requestID = search.requestID { limits.resolver.withdraw(host, requestID) }
        }
    }

    /// Withdraws all look-ups at the end of the transport, because their callbacks hold the loop.
    func withdrawLookUps() {
        for (host, search) in names.searches {
            if let requestID = search.requestID { limits.resolver.withdraw(host, requestID) }
        }
    }
}
