// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

extension CurlTransport {
    // MARK: Ending transfers

    /// - Parameter isCut: Whether libcurl had not finished the transfer.
    func end(_ handle: EasyHandle, _ failure: EngineFailure?, isCut: Bool = true) {
        if let transfer = handle.transfer { end(handle, transfer, failure, isCut: isCut) }
    }

    /// Ends the transfer of a handle.
    func end(_ handle: EasyHandle, _ transfer: EngineTransfer, _ failure: EngineFailure?, isCut wasCut: Bool) {
        let origin = transfer.loopState.origin
        let failure = failure != nil && transfer.isBodyDiscarded ? nil : failure
        let domain = handle.domain
        let isMeasured =
            transfer.plan.isMeasured || failure != nil || !transfer.loopState.isHeadFinal
            || transfer.loopState.observerState != nil
        let metrics = isMeasured ? transfer.metrics(by: handle) : nil
        if transfer.loopState.isReceivingPaused {
            // libcurl 7.88 loses track of up to 32 MiB that it buffers for a paused stream when another transfer uses
            // the connection. Unpausing without a transfer to receive the bytes makes libcurl free them.
            handle.transfer = nil
            curl_easy_pause(handle.curl, CURLPAUSE_CONT)
        }
        removeFromMulti(handle)
        let last = inUse.removeLast()
        if last !== handle {
            last.index = handle.index
            inUse[handle.index] = last
        }
        domain.active -= 1
        origin?.count(1, in: domain.number)
        let connection = transfer.loopState.connection
        if let connection, let origin {
            transfer.loopState.connection = nil
            sockets.leave(connection, from: origin)
        }
        leaveLimitQueue(transfer)
        transfer.loopState.handle = nil
        if let connection, let failure, !failure.isRequested, !transfer.plan.connectsOnly {
            sockets.noteFailure(over: connection)
        }
        // When the response ends before the request body does, libcurl leaves the stream open.
        let isLeftOpen = transfer.isBodyPulled && transfer.loopState.bodySentAt == 0 && transfer.upload.length != 0
        let isCut = wasCut || isLeftOpen || transfer.loopState.abort != nil
        if let connection, isCut, !transfer.plan.connectsOnly {
            resetStream(of: transfer, by: handle, over: connection)
        }
        // libcurl reads the addresses when it starts the transfer, which may not have happened yet.
        if transfer.loopState.name != nil, transfer.loopState.sends == 0, let origin {
            domain.forgetGivenAddresses(origin)
        }
        domain.recycle(handle)
        freeIfUnused(domain)
        transfer.done(failure, metrics, isWhole: !(wasCut && transfer.isBodyDiscarded), deliveries)
        releaseSlot(transfer)
        transfer.loopState.origin = nil
    }

    private func removeFromMulti(_ handle: EasyHandle) {
        handle.keepConnection()
        curl_multi_remove_handle(handle.domain.multi, handle.curl)
        handle.forgetOpened(in: sockets)
        handle.stopRecording()
        if !pausedRetries.isEmpty { pausedRetries.removeAll { $0.handle === handle } }
        streams.forget(handle)
    }

    /// Makes libcurl send RST_STREAM, so that an HTTP/2 server stops sending on a stream that has ended.
    ///
    /// libcurl 7.88 delays RST_STREAM until bytes arrive on the connection or other bytes are sent, and the server
    /// keeps sending meanwhile. libcurl has already closed an HTTP/1.1 connection at this point. A connection without
    /// other transfers stays open if that is safe; otherwise this method closes it.
    private func resetStream(
        of transfer: EngineTransfer, by handle: EasyHandle, over connection: SocketTable.Connection
    ) {
        guard sockets.isUsed(connection) else {
            if resetAndKeep(connection, after: transfer, by: handle) { return }
            return sockets.closeIfIdle(connection)
        }
        flushFrames(over: connection, handle.domain)
    }

    /// Makes libcurl send the pending frames of an HTTP/2 connection that transfers use.
    func flushFrames(over connection: SocketTable.Connection, _ domain: CurlDomain) {
        // Toggling the pause state makes libcurl flush pending frames.
        for neighbour in inUse {
            guard let other = neighbour.transfer, other.loopState.connection == connection,
                !other.loopState.isReceivingPaused
            else { continue }
            let isSendingPaused = other.loopState.isSendingPaused
            wantsTurn = true
            let toggled = isSendingPaused ? CURLPAUSE_CONT : CURLPAUSE_SEND
            // libcurl rejects the call for a transfer that has ended and whose end has not been collected yet.
            guard curl_easy_pause(neighbour.curl, toggled) == CURLE_OK else { continue }
            curl_easy_pause(neighbour.curl, isSendingPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
            return
        }
        poke(connection, domain)
    }

    /// Makes libcurl check a connection without a socket event.
    func poke(_ connection: SocketTable.Connection, _ domain: CurlDomain) {
        wantsTurn = true
        guard sockets.isUsed(connection) else { return }
        var running: CInt = 0
        curl_multi_socket_action(
            domain.multi, connection.descriptor, CURL_CSELECT_IN | CURL_CSELECT_OUT, &running)
    }

    /// Ends a transfer that has no handle.
    func fail(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason, _ phase: EngineFailure.Phase) {
        var metrics = RawMetrics()
        metrics.remark = transfer.plan.target.remark
        let since = transfer.startedAt
        let now = loop.clock.now()
        metrics.queued = (transfer.loopState.hasSlot ? max(transfer.loopState.admittedAt, since) : now) &- since
        if transfer.loopState.hasSlot { metrics.total = Int64((now &- min(transfer.loopState.admittedAt, now)) / 1000) }
        transfer.complete(failure: EngineFailure(reason, phase: phase), metrics: metrics, observer: deliveries.observer)
        transfer.loopState.discardCollected()
        releaseSlot(transfer)
        if !transfer.loopState.hasSlot, let origin = transfer.loopState.origin { compact(origin) }
        transfer.loopState.origin = nil
    }

    // MARK: Retries

    /// Sends a request again after a failure, if the server has certainly not processed it or the request may be
    /// repeated (RFC 9110 §9.2.2), and no byte of a response has arrived.
    ///
    /// libcurl itself retries on connections that it finds dead. This method handles the cases that libcurl does not
    /// recognise.
    ///
    /// - Returns: Whether the request is sent again.
    func restart(_ handle: EasyHandle, _ transfer: EngineTransfer, after failure: EngineFailure) -> Bool {
        switch failure.reason {
        case .refusedCoding, .refusedExpectation: return beginRetry(handle, transfer, overFresh: false)
        default: break
        }
        if let isAgain = retryRefused(handle, transfer, after: failure.reason) { return isAgain }
        guard transfer.loopState.connectionRetries == 0, transfer.loopState.headBytes == 0 else { return false }
        switch failure.reason {
        case .streamRefused: return false
        case .curl(let code, _): return retry(handle, transfer, failure, handle.fault(for: CURLcode(rawValue: code)))
        default: return false
        }
    }

    /// Retries a request over a new connection when libcurl's result shows that the server has not processed it.
    private func retry(
        _ handle: EasyHandle, _ transfer: EngineTransfer, _ failure: EngineFailure, _ fault: CurlFault
    ) -> Bool {
        switch fault {
        case .connectionFailed:
            // This error usually means that the server is shutting down the connection.
            guard transfer.plan.isIdempotent else { return false }
        case .truncated:
            // The reused HTTP/2 connection ended before a response arrived.
            guard transfer.plan.isRetriable, curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) == 0 else {
                return false
            }
        case .streamClosed, .streamClosedInsideHead:
            // The server closed the stream without an error before the body ended, so it has sent a response. libcurl
            // 7.88 loses a response that arrives together with the close. A retry over HTTP/1.1 receives it.
            guard transfer.plan.isIdempotent, transfer.isBodyPulled else { return false }
            transfer.loopState.failureOverHTTP2 = failure
            if let origin = transfer.loopState.origin {
                recount(origin) {
                    if !transfer.isExclusive { origin.exclusive += 1 }
                    transfer.loopState.usesHTTP1 = true
                }
                grownOrigins.append(origin)
            }
        case .sendFailed:
            // The connection was closed meanwhile: a reused one, or one that a server accepted just before it shut
            // down.
            let isUnsent = curlew_get_long(handle.curl, CURLINFO_REQUEST_SIZE) == 0
            // A streamed body that failed on a new connection is not sent a second time.
            let isReused = curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) == 0
            let mayRepeat = isReused ? transfer.plan.isRetriable : transfer.plan.isIdempotent && !transfer.isBodyPulled
            guard isUnsent || mayRepeat else { return false }
        default: return false
        }
        return beginRetry(handle, transfer, overFresh: true)
    }

    /// - Parameter pause: Nanoseconds to wait before the request is sent. The limits of the transfer keep running.
    func beginRetry(
        _ handle: EasyHandle, _ transfer: EngineTransfer, overFresh: Bool, after pause: UInt64 = 0
    ) -> Bool {
        guard let url = handle.url, transfer.rewindBody() else { return false }
        removeFromMulti(handle)
        transfer.leaveConnection()
        leaveLimitQueue(transfer)
        transfer.loopState.beginRetry(at: now)
        transfer.loopState.needsFreshConnection = overFresh
        if overFresh { transfer.loopState.connectionRetries += 1 }
        if let origin = transfer.loopState.origin, origin.lookUps.count < 2,
            let name = names.addresses(of: origin.peer.host, now: now),
            !name.endpoints(of: origin.peer, at: origin).isEmpty
        {
            transfer.loopState.name = name
        }
        handle.judge = nil
        handle.proxyJudge = nil
        handle.endpoint = nil
        let handle = renewed(handle)
        guard handle.apply(transfer, url: url, on: self) else { return false }
        if pause > 0 {
            pausedRetries.append((handle, now &+ pause))
            firstRetryAt = min(firstRetryAt, now &+ pause)
        } else {
            transfer.sendRestartEvent()
            add(handle)
        }
        return true
    }

    // MARK: Results of libcurl

    /// Returns the failure of a transfer that libcurl has ended, or nil for success.
    func failure(of handle: EasyHandle, _ transfer: EngineTransfer, _ code: CURLcode) -> EngineFailure? {
        switch transfer.loopState.abort {
        case .notRetried: return EngineFailure(.notRetried, phase: .waiting)
        case .responseTruncated: return EngineFailure(.responseTruncated, phase: .receiving)
        default: break
        }
        if let reason = transfer.loopState.abort { return EngineFailure(reason, phase: phase(of: handle, transfer)) }
        if code == CURLE_OK { return responseFailure(of: handle, transfer) }
        let phase = phase(of: handle, transfer)
        let fault = handle.fault(for: code)
        if let failure = certificateFailure(of: handle, transfer) { return failure }
        let judge = handle.judge ?? handle.proxyJudge
        if fault == .handshakeFailed || fault == .plainText, phase == .securing, judge?.isCut == true {
            return EngineFailure(.handshakeTruncated, phase: .securing)
        }
        if fault == .cannotConnect, let failure = transfer.loopState.socketFailure {
            return EngineFailure(failure.reason, phase: .connecting)
        }
        if fault == .timedOut {
            return EngineFailure(.timedOut(.connect, after: transfer.plan.limits.length(of: .connect)), phase: phase)
        }
        if fault == .cannotConnect {
            let errno = CInt(curlew_get_long(handle.curl, CURLINFO_OS_ERRNO))
            if errno == EADDRNOTAVAIL { return EngineFailure(.noAddress, phase: .connecting) }
        }
        let text = handle.text(for: code)
        if judge?.isProxy == true, phase == .securing, fault == .handshakeFailed || fault == .plainText {
            return EngineFailure(.proxyHandshakeFailed(text), phase: phase)
        }
        if let refusal = proxyRefusal(of: handle, transfer, fault) {
            return EngineFailure(refusal, phase: .connecting)
        }
        if fault == .sendFailed, phase == .connecting {
            // The connection was reset before libcurl read from it.
            return EngineFailure(.curl(code: CURLE_COULDNT_CONNECT.rawValue, text: text), phase: phase)
        }
        if isRefused(handle, fault) || handle.isExcludedByGoAway {
            return EngineFailure(.streamRefused, phase: .waiting)
        }
        if fault == .streamClosed, transfer.isResponseComplete(by: handle) { return nil }
        // A server that speaks only HTTP/2 responds to the retry over HTTP/1.1 with bytes that are not HTTP/1.1.
        if let first = transfer.loopState.failureOverHTTP2, !transfer.loopState.isHeadComplete { return first }
        let reason = protocolViolation(of: handle, transfer, fault, text) ?? .curl(code: code.rawValue, text: text)
        return EngineFailure(reason, phase: phase)
    }

    /// Returns the failure of a transfer for which libcurl reports success, or nil if the response is complete.
    private func responseFailure(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure? {
        // libcurl reports success for a connection that closed inside the head; the empty line at its end is missing
        // then.
        guard transfer.loopState.isHeadComplete else {
            return EngineFailure(.headTruncated, phase: phase(of: handle, transfer))
        }
        if let judge = transfer.loopState.closingJudge, !judge.isEndSignalled {
            return EngineFailure(.endNotSignalled, phase: .receiving)
        }
        if isCut(transfer) { return EngineFailure(.responseTruncated, phase: .receiving) }
        if case .pipe(let pipe) = transfer.upload, pipe.hasOverrun, let declared = pipe.declared {
            return EngineFailure(.bodyTooLong(declared: declared), phase: .sending)
        }
        return nil
    }

    /// Whether the body of an HTTP/2 response without a length is incomplete: only END_STREAM ends it (RFC 9113 §8.1).
    private func isCut(_ transfer: EngineTransfer) -> Bool {
        let loopState = transfer.loopStatePointer
        guard loopState.pointee.check.isMultiplexed, loopState.pointee.expectsBody,
            loopState.pointee.check.length == nil
        else {
            return false
        }
        if let isEnded = loopState.pointee.isStreamEnded { return !isEnded }
        guard CurlVersion.current.acceptsTruncatedStreams, let connection = loopState.pointee.connection else {
            return false
        }
        return sockets.mayHaveTruncated(connection)
    }

    /// Returns the failure for a certificate that one side rejected: the server's certificate here, or the client's
    /// there.
    private func certificateFailure(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure? {
        guard let judge = handle.judge ?? handle.proxyJudge, !transfer.loopState.isHeadComplete else { return nil }
        if let refusal = judge.refusal {
            return EngineFailure(judge.isProxy ? .untrustedProxy(refusal) : .untrusted(refusal), phase: .securing)
        }
        // In TLS 1.3 the handshake ends before the server checks the client certificate, so its alert may follow the
        // request.
        guard judge.isIdentityRefused, let alert = judge.alert else { return nil }
        let reason = EngineFailure.Reason.identityRefused(
            alert: alert, hadIdentity: judge.hasIdentity, authorities: judge.acceptedAuthorities ?? [],
            isProxy: judge.isProxy)
        return EngineFailure(reason, phase: .securing)
    }

    /// Returns the reason why a proxy opened no connection to the server; nil if that is not the failure.
    private func proxyRefusal(
        of handle: EasyHandle, _ transfer: EngineTransfer, _ fault: CurlFault
    ) -> EngineFailure.Reason? {
        guard let proxy = handle.domain.trust.route?.proxy, handle.judge == nil, transfer.loopState.sends == 0 else {
            return nil
        }
        if !proxy.isHTTP {
            guard fault == .socksFailed else { return nil }
            let code = curlew_get_long(handle.curl, CURLINFO_PROXY_ERROR)
            return .socksRefused(SOCKSFault(code: code), host: transfer.plan.host)
        }
        let status = curlew_get_long(handle.curl, CURLINFO_HTTP_CONNECTCODE)
        // libcurl stores the status of the last response to CONNECT, and 0 before the first one.
        guard status != 0, !(200...299).contains(status) else { return nil }
        handle.isRefusedByProxy = status == 407
        return .proxyRefused(status: status, schemes: Self.schemes(offeredTo: handle))
    }

    /// Returns the schemes in `Proxy-Authenticate` of the last 407 to CONNECT.
    private static func schemes(offeredTo handle: EasyHandle) -> [String] {
        let known = [
            (curlew_auth_basic, "Basic"), (curlew_auth_digest, "Digest"), (curlew_auth_bearer, "Bearer"),
            (curlew_auth_negotiate, "Negotiate"), (curlew_auth_ntlm, "NTLM"),
        ]
        let offer = curlew_get_long(handle.curl, CURLINFO_PROXYAUTH_AVAIL)
        return known.filter { offer & $0.0 != 0 }.map(\.1)
    }

    /// Returns the peer's protocol violation that libcurl reports as an error of another kind.
    private func protocolViolation(
        of handle: EasyHandle, _ transfer: EngineTransfer, _ fault: CurlFault, _ text: String
    ) -> EngineFailure.Reason? {
        switch fault {
        case .malformedChunks: return .invalidChunks(text)
        case .headTooLarge: return .headTooLarge(limit: 300 << 10)
        // libcurl's index of fields rejects a blank before the first field, and reports that as a bad argument.
        case .badArgument where !transfer.loopState.isHeadComplete && !handle.head.isEmpty:
            return .invalidHead("one of its field lines is malformed (RFC 9112 §5)")
        // Unless memory is exhausted, this code means that a line is too long.
        case .outOfMemory, .tooLarge:
            let isSent = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0
            return isSent && !transfer.loopState.isHeadComplete ? .lineTooLong(limit: 100 << 10) : nil
        default: return nil
        }
    }

    /// Whether an HTTP/2 server reported that it has not processed the request (RFC 9113 §8.7).
    ///
    /// libcurl retries such a request, each time over a new connection, before it gives up.
    private func isRefused(_ handle: EasyHandle, _ fault: CurlFault) -> Bool {
        switch fault {
        case .streamRefused: true
        case .retriesExhausted: curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) > 1
        default: false
        }
    }

    /// Returns the phase that a transfer has reached, derived from the times that libcurl measured.
    func phase(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure.Phase {
        if transfer.loopState.isHeadComplete || !handle.head.isEmpty { return .receiving }
        let curl = handle.curl
        // Newer versions of libcurl set the time before the tunnel through a proxy is open.
        if transfer.loopState.sends == 0 || curlew_get_offset(curl, CURLINFO_PRETRANSFER_TIME_T) == 0 {
            // The judge is created when TLS begins. libcurl sets its own time only after the handshake has succeeded.
            if handle.judge != nil { return .securing }
            // The handshake with an https proxy; the tunnel through it counts as connecting.
            if let judge = handle.proxyJudge, !judge.isAccepted { return .securing }
            if curlew_get_offset(curl, CURLINFO_NAMELOOKUP_TIME_T) == 0 { return .resolving }
            return .connecting
        }
        guard transfer.loopState.bodySentAt == 0 else { return .waiting }
        return transfer.isBodyPulled ? .sending : .waiting
    }
}
