// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

// Who may use the wire, and when: places at each origin, connections in all, look-ups before connections.
extension CurlTransport {
    func start(_ transfer: EngineTransfer) {
        guard transfer.outcome == nil else { return }
        transfer.wire.lastActivity = now
        transfer.wire.priority = transfer.plan.priority
        if isClosed { return fail(transfer, .closed, .preparing) }
        guard let url = urls.url(for: transfer.plan) else {
            let text = "libcurl does not take the URL"
            return fail(transfer, .curl(code: CURLE_URL_MALFORMAT.rawValue, text: text), .preparing)
        }
        transfer.wire.origin = url.origin
        if hasPlace(at: url.origin) && admit(transfer, url) { return }
        if transfer.outcome == nil { queue(transfer, url.origin) }
    }

    // MARK: Places

    /// How many transfers an origin takes at once: one for each connection, unless they can share one.
    func places(at origin: Origin) -> Int {
        let limits = loop.configuration
        let canShare = origin.isSecure || CurlVersion.current.sharesPlainHTTP2
        if origin.isShared || limits.version == .http2PriorKnowledge && canShare { return limits.transfersPerHost }
        return min(limits.transfersPerHost, limits.connectionsPerHost)
    }

    private func hasPlace(at origin: Origin) -> Bool {
        guard origin.active < places(at: origin) else { return false }
        let more = origin.connections(for: origin.active + 1) - origin.connections(for: origin.active)
        return demand + more <= loop.configuration.connections
    }

    private func takePlace(_ transfer: EngineTransfer, at origin: Origin) {
        demand -= origin.connections(for: origin.active)
        origin.active += 1
        demand += origin.connections(for: origin.active)
        transfer.wire.hasPlace = true
        transfer.wire.admittedAt = now
    }

    /// Gives a transfer's place, if it has one, to whoever waits longest for one that has become free.
    func leavePlace(_ transfer: EngineTransfer) {
        guard transfer.wire.hasPlace, let origin = transfer.wire.origin else { return }
        transfer.wire.hasPlace = false
        demand -= origin.connections(for: origin.active)
        origin.active -= 1
        demand += origin.connections(for: origin.active)
        if !origin.queue.isEmpty { callForward(origin) }
        if !ready.isEmpty { admitReady() }
    }

    func queue(_ transfer: EngineTransfer, _ origin: Origin) {
        lastTicket += 1
        if transfer.wire.ticket == 0 { transfer.wire.ticket = lastTicket }
        transfer.wire.priority = transfer.priorityNow
        if waiting.updateValue(transfer, forKey: transfer.id) == nil { origin.waiting += 1 }
        origin.queue.join(transfer, priority: transfer.wire.priority, ticket: transfer.wire.ticket)
        if origin.active < places(at: origin) { callForward(origin) }
        scheduleSweep(transfer)
    }

    func leaveLine(_ transfer: EngineTransfer, _ origin: Origin) {
        if waiting.removeValue(forKey: transfer.id) != nil { origin.waiting -= 1 }
    }

    /// Drops those who have left an origin's line once they are the most of it.
    func tidy(_ origin: Origin) {
        guard origin.queue.count > 16, origin.queue.count > 2 * origin.waiting else { return }
        origin.queue.removeAll { waiting[$0.id] == nil }
    }

    /// Lets the first of an origin's line compete with those of other origins.
    func callForward(_ origin: Origin) {
        guard let first = origin.queue.first else { return }
        ready.join(origin, priority: first.priority, ticket: first.ticket)
    }

    /// Admits whoever is first, over all origins, as long as there are places.
    ///
    /// An origin whose own places are taken is called forward again when one becomes free.
    func admitReady() {
        var heldBack: [(Origin, EngineTransfer)] = []
        while demand <= loop.configuration.connections, let (origin, _) = ready.next() {
            guard hasPlace(at: origin) else {
                // Taken at the origin: called again from there. Taken in all: it stays first, and so do the others.
                if origin.active < places(at: origin) {
                    callForward(origin)
                    break
                }
                continue
            }
            guard let (next, priority) = origin.queue.next() else { continue }
            // Left, or joined again with another priority.
            if waiting[next.id] != nil, !next.wire.hasPlace, priority == next.wire.priority {
                if let url = urls.url(for: next.plan) {
                    if admit(next, url) { leaveLine(next, origin) } else { heldBack.append((origin, next)) }
                } else {
                    leaveLine(next, origin)
                    fail(next, .noResources(errno: ENOMEM), .queued)
                }
            }
            callForward(origin)
        }
        // Paused ones keep their turn, and are called when they are resumed.
        for (origin, transfer) in heldBack {
            origin.queue.join(transfer, priority: transfer.wire.priority, ticket: transfer.wire.ticket)
        }
        finishClosingIfIdle()
    }

    /// What those who give up waiting for an origin tell about its line.
    func report(on origin: Origin) -> EngineFailure.QueueReport {
        let limits = loop.configuration
        let holders = (inUse.compactMap(\.transfer) + Array(resolving.values)).filter { $0.wire.origin === origin }
        let oldest = holders.min { $0.wire.admittedAt < $1.wire.admittedAt }
        return EngineFailure.QueueReport(
            host: origin.host, active: holders.count, places: places(at: origin), waiting: origin.waiting,
            connections: demand,
            connectionLimit: limits.connections, oldestAge: oldest.map { now &- min($0.wire.admittedAt, now) } ?? 0,
            oldestLabel: oldest?.plan.label)
    }

    // MARK: Onto the wire

    /// Gives a transfer a place and puts it on the wire; false when it wants to stay paused.
    private func admit(_ transfer: EngineTransfer, _ url: ParsedURL) -> Bool {
        guard let collects = transfer.tryAdmission() else { return false }
        let origin = url.origin
        // Open connections need no address. Should libcurl want another one, it asks for itself.
        let mayReuse = origin.sockets >= (origin.isShared ? 1 : origin.active + 1) && !transfer.plan.ownsConnection
        takePlace(transfer, at: origin)
        if collects { transfer.wire.collected = CollectedBody() }
        if origin.needsLookUp {
            transfer.wire.name = names.addresses(of: origin.host, now: now)
            if transfer.wire.name == nil && !mayReuse {
                search(transfer, origin)
                return true
            }
        }
        launch(transfer, url)
        return true
    }

    private func launch(_ transfer: EngineTransfer, _ url: ParsedURL) {
        transfer.wire.launchedAt = now
        transfer.wire.lastActivity = now
        guard let domain = live(transfer.plan.trust), let handle = domain.takeHandle(),
            handle.apply(transfer, url: url, now: now)
        else { return fail(transfer, .noResources(errno: ENOMEM), .preparing) }
        transfer.wire.handle = handle
        handle.transfer = transfer
        handle.place = inUse.count
        inUse.append(handle)
        domain.active += 1
        domain.lastUsed = now
        add(handle)
        if transfer.wire.handle != nil { scheduleSweep(transfer) }
    }

    /// Hands a handle to libcurl, which begins with the next call.
    func add(_ handle: EasyHandle) {
        let code = curl_multi_add_handle(handle.domain.multi, handle.curl)
        guard code != CURLM_OK else { return }
        let text = String(cString: curl_multi_strerror(code))
        end(handle, EngineFailure(.curl(code: CURLE_FAILED_INIT.rawValue, text: text), phase: .preparing))
    }

    // MARK: Look-ups

    private func search(_ transfer: EngineTransfer, _ origin: Origin) {
        let host = origin.host
        resolving[transfer.id] = transfer
        if names.searches[host] == nil {
            names.searches[host] = NameCache.Search()
            let ticket = loop.configuration.resolver.find(host) { [weak loop] answer in
                loop?.call { $0.found(host, answer) }
            }
            guard let ticket else {
                names.searches[host] = nil
                resolving[transfer.id] = nil
                return fail(transfer, .noResources(errno: EAGAIN), .resolving)
            }
            names.searches[host]?.ticket = ticket
        }
        names.searches[host]?.waiting.append(transfer)
        scheduleSweep(transfer)
    }

    private func found(_ host: String, _ answer: Resolver.Answer) {
        guard let search = names.searches.removeValue(forKey: host) else { return }
        if case .success(let addresses) = answer { names.learn(host, addresses, now: now) }
        for transfer in search.waiting where resolving.removeValue(forKey: transfer.id) != nil {
            switch answer {
            case .failure(let failure):
                fail(transfer, .cannotResolve(host: host, text: failure.text), .resolving)
            case .success:
                transfer.wire.name = names.addresses(of: host, now: now)
                guard let url = urls.url(for: transfer.plan) else {
                    fail(transfer, .noResources(errno: ENOMEM), .resolving)
                    continue
                }
                launch(transfer, url)
                // For what was wished meanwhile.
                if transfer.wire.handle != nil { adjust(transfer) }
            }
        }
    }

    /// Takes a transfer out of the look-up it waits for.
    func withdraw(_ transfer: EngineTransfer) {
        guard resolving.removeValue(forKey: transfer.id) != nil, let host = transfer.wire.origin?.host else { return }
        names.searches[host]?.waiting.removeAll { $0 === transfer }
        guard let left = names.searches[host], left.waiting.isEmpty else { return }
        names.searches[host] = nil
        if let ticket = left.ticket { loop.configuration.resolver.withdraw(host, ticket) }
    }
}
