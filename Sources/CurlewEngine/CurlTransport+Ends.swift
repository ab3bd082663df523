// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

extension CurlTransport {
    // MARK: Ending transfers

    /// - Parameter isCut: Whether libcurl had not finished the transfer.
    func end(_ handle: EasyHandle, _ failure: EngineFailure?, isCut: Bool = true) {
        guard let transfer = handle.transfer else { return }
        let origin = transfer.wire.origin
        let failure = transfer.isLetGo ? nil : failure
        let domain = handle.domain
        let isMeasured =
            transfer.plan.isMeasured || failure != nil || transfer.wire.leadsElsewhere || transfer.wire.watch != nil
        let metrics = isMeasured ? transfer.metrics(by: handle) : nil
        if transfer.wire.isReceivingPaused {
            // libcurl 7.88 loses track of up to 32 MiB that it buffers for a paused stream when another transfer uses
            // the connection. Unpausing without a transfer to receive the bytes makes libcurl free them.
            handle.transfer = nil
            curl_easy_pause(handle.curl, CURLPAUSE_CONT)
        }
        takeFromWire(handle)
        let last = inUse.removeLast()
        if last !== handle {
            last.place = handle.place
            inUse[handle.place] = last
        }
        domain.active -= 1
        origin?.count(1, in: domain.number)
        let connection = transfer.wire.connection
        transfer.part()
        leaveLimits(transfer)
        transfer.wire.handle = nil
        if let connection, let failure, !failure.isOrdered { sockets.noteFailure(over: connection) }
        // When the response ends before the request body does, libcurl leaves the stream open.
        let isLeftOpen = transfer.isBodyPulled && transfer.wire.bodySentAt == 0 && transfer.upload.length != 0
        if let connection, isCut || isLeftOpen || transfer.wire.abort != nil {
            resetStream(of: transfer, by: handle, over: connection)
        }
        // libcurl reads the addresses when it starts the transfer, and it may not have got that far.
        if transfer.wire.name != nil, transfer.wire.sends == 0, let origin { domain.forgetTelling(origin) }
        // Callers that need only the redirect are notified before the end.
        if transfer.wire.leadsElsewhere { transfer.publish(now, isForReader: failure?.isCancellation != true) }
        domain.giveBack(handle)
        dropIfDone(domain)
        if failure?.isOrdered != true { transfer.holdRedirect() }
        if failure == nil, !(isCut && transfer.isLetGo) {
            transfer.tell(.received(transfer.wire.counters.received))
        }
        transfer.complete(
            failure: failure, body: transfer.wire.collected, metrics: metrics, witness: witness, in: self)
        transfer.wire.collected = nil
        transfer.wire.slab = nil
        leavePlace(transfer)
        transfer.wire.origin = nil
    }

    /// Resumes the callers that wait for an end: at once, or together with the others of this turn.
    func tell(_ told: EngineTransfer.Told) {
        if told.isEmpty { return }
        if told.areInPool { ended.append(told) } else { told.resumeAll() }
    }

    /// Resumes the callers that wait for the ends of this turn.
    ///
    /// On a busy core each resumption costs a switch to another thread and back. From four ends on, one detached task
    /// resumes all callers, which costs one switch in total.
    func tellEnded() {
        if ended.count < 4 {
            for told in ended { told.resumeAll() }
        } else {
            let all = ended
            Task.detached(priority: .high) { for told in all { told.resumeAll() } }
        }
        ended.removeAll(keepingCapacity: ended.count < 4)
    }

    private func takeFromWire(_ handle: EasyHandle) {
        curl_multi_remove_handle(handle.domain.multi, handle.curl)
        handle.forgetOpened(in: sockets)
        handle.stopListening()
        if !resting.isEmpty { resting.removeAll { $0.handle === handle } }
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
            if keeps(connection, after: transfer, by: handle) { return }
            return sockets.buryIfIdle(connection)
        }
        // Toggling the pause state makes libcurl flush the pending RST_STREAM.
        for neighbour in inUse {
            guard let other = neighbour.transfer, other.wire.connection == connection, !other.wire.isReceivingPaused
            else { continue }
            let isSendingPaused = other.wire.isSendingPaused
            wantsTurn = true
            let toggled = isSendingPaused ? CURLPAUSE_CONT : CURLPAUSE_SEND
            // libcurl rejects the call for a transfer that has ended and whose end has not been collected yet.
            guard curl_easy_pause(neighbour.curl, toggled) == CURLE_OK else { continue }
            curl_easy_pause(neighbour.curl, isSendingPaused ? CURLPAUSE_SEND : CURLPAUSE_CONT)
            return
        }
        nudge(connection, handle.domain)
    }

    /// Makes libcurl check a connection without a socket event.
    func nudge(_ connection: SocketTable.Connection, _ domain: CurlDomain) {
        wantsTurn = true
        guard sockets.isUsed(connection) else { return }
        var running: CInt = 0
        curl_multi_socket_action(
            domain.multi, connection.descriptor, CURL_CSELECT_IN | CURL_CSELECT_OUT, &running)
    }

    /// Ends a transfer that has no handle.
    func fail(_ transfer: EngineTransfer, _ reason: EngineFailure.Reason, _ phase: EngineFailure.Phase) {
        var metrics = RawMetrics()
        let since = transfer.startedAt
        let now = Monotonic.now()
        metrics.queued = (transfer.wire.hasPlace ? max(transfer.wire.admittedAt, since) : now) &- since
        if transfer.wire.hasPlace { metrics.total = Int64((now &- min(transfer.wire.admittedAt, now)) / 1000) }
        transfer.complete(failure: EngineFailure(reason, phase: phase), metrics: metrics, witness: witness)
        transfer.wire.collected = nil
        leavePlace(transfer)
        if !transfer.wire.hasPlace, let origin = transfer.wire.origin { tidy(origin) }
        transfer.wire.origin = nil
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
        case .refusedCoding, .refusedExpectation: return beginAgain(handle, transfer, overFresh: false)
        default: break
        }
        if let isAgain = restartRefused(handle, transfer, after: failure.reason) { return isAgain }
        guard transfer.wire.repairs == 0, transfer.wire.headBytes == 0 else { return false }
        switch failure.reason {
        case .streamRefused: return false
        case .curl(CURLE_HTTP2.rawValue, _):
            // This error usually means that the server is shutting down the connection.
            guard transfer.plan.isIdempotent else { return false }
        case .curl(CURLE_PARTIAL_FILE.rawValue, _):
            // The reused HTTP/2 connection ended before a response arrived.
            guard transfer.plan.isResent, curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) == 0 else {
                return false
            }
        case .curl(CURLE_HTTP2_STREAM.rawValue, _):
            // The server closed the stream without an error before the body ended, so it has sent a response. libcurl
            // 7.88 loses a response that arrives together with the close. A retry over HTTP/1.1 receives it.
            guard transfer.plan.isIdempotent, transfer.isBodyPulled, handle.isClosedCleanly else { return false }
            transfer.wire.failureOverHTTP2 = failure
            if let origin = transfer.wire.origin {
                recount(origin) {
                    if !transfer.isAlone { origin.alone += 1 }
                    transfer.wire.isByHTTP1 = true
                }
                widened.append(origin)
            }
        case .curl(CURLE_SEND_ERROR.rawValue, _):
            // The connection was closed meanwhile: a reused one, or one that a server accepted just before it shut
            // down.
            let isUnsent = curlew_get_long(handle.curl, CURLINFO_REQUEST_SIZE) == 0
            // A streamed body that failed on a new connection is not sent a second time.
            let isReused = curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) == 0
            let mayRepeat = isReused ? transfer.plan.isResent : transfer.plan.isIdempotent && !transfer.isBodyPulled
            guard isUnsent || mayRepeat else { return false }
        default: return false
        }
        return beginAgain(handle, transfer, overFresh: true)
    }

    /// - Parameter pause: Nanoseconds to wait before the request is sent. The limits of the transfer keep running.
    func beginAgain(
        _ handle: EasyHandle, _ transfer: EngineTransfer, overFresh: Bool, after pause: UInt64 = 0
    ) -> Bool {
        guard let url = handle.url, transfer.rewindBody() else { return false }
        takeFromWire(handle)
        transfer.part()
        leaveLimits(transfer)
        transfer.wire.beginAgain(at: now)
        transfer.wire.needsFreshConnection = overFresh
        if overFresh { transfer.wire.repairs += 1 }
        if let origin = transfer.wire.origin, let name = names.addresses(of: origin.host, now: now) {
            transfer.wire.name = name
        }
        handle.gate = nil
        let handle = renewed(handle)
        guard handle.apply(transfer, url: url, now: now) else { return false }
        if pause > 0 {
            resting.append((handle, now &+ pause))
            restsUntil = min(restsUntil, now &+ pause)
        } else {
            transfer.tellRestart()
            add(handle)
        }
        return true
    }

    // MARK: Results of libcurl

    /// Returns the failure of a transfer that libcurl has ended, or nil for success.
    func failure(of handle: EasyHandle, _ transfer: EngineTransfer, _ code: CURLcode) -> EngineFailure? {
        switch transfer.wire.abort {
        case .notRepeated: return EngineFailure(.notRepeated, phase: .waiting)
        case .answerCut: return EngineFailure(.answerCut, phase: .receiving)
        default: break
        }
        if let reason = transfer.wire.abort { return EngineFailure(reason, phase: phase(of: handle, transfer)) }
        if code == CURLE_OK { return flaw(of: handle, transfer) }
        let phase = phase(of: handle, transfer)
        if let failure = judgement(of: handle, transfer) { return failure }
        if code == CURLE_SSL_CONNECT_ERROR, phase == .securing, handle.gate?.isCut == true {
            return EngineFailure(.handshakeCut, phase: .securing)
        }
        if transfer.wire.socketErrno != 0, code == CURLE_COULDNT_CONNECT {
            return EngineFailure(.noResources(errno: transfer.wire.socketErrno), phase: .connecting)
        }
        if code == CURLE_OPERATION_TIMEDOUT {
            return EngineFailure(.timedOut(.connect, after: transfer.plan.length(of: .connect)), phase: phase)
        }
        if code == CURLE_COULDNT_CONNECT {
            let errno = CInt(curlew_get_long(handle.curl, CURLINFO_OS_ERRNO))
            if errno == EADDRNOTAVAIL { return EngineFailure(.noAddress, phase: .connecting) }
        }
        let text = handle.text(for: code)
        if code == CURLE_SEND_ERROR, phase == .connecting {
            // The connection was reset before libcurl read from it.
            return EngineFailure(.curl(code: CURLE_COULDNT_CONNECT.rawValue, text: text), phase: phase)
        }
        if isRefused(handle, code, text) || handle.isLeftOut { return EngineFailure(.streamRefused, phase: .waiting) }
        if code == CURLE_HTTP2_STREAM, !handle.hasDetail, transfer.isAnsweredWhole(by: handle) { return nil }
        // A server that speaks only HTTP/2 responds to the retry over HTTP/1.1 with bytes that are not HTTP/1.1.
        if let first = transfer.wire.failureOverHTTP2, !transfer.wire.isHeadComplete { return first }
        let reason = misbehaviour(of: handle, transfer, code, text) ?? .curl(code: code.rawValue, text: text)
        return EngineFailure(reason, phase: phase)
    }

    /// Returns the failure of a transfer for which libcurl reports success, or nil if the response is complete.
    private func flaw(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure? {
        // libcurl reports success for a connection that closed inside the head; the empty line at its end is missing
        // then.
        guard transfer.wire.isHeadComplete else {
            return EngineFailure(.headTruncated, phase: phase(of: handle, transfer))
        }
        if let gate = transfer.wire.closingGate, !gate.isEndAnnounced {
            return EngineFailure(.endNotAnnounced, phase: .receiving)
        }
        if isCut(transfer) { return EngineFailure(.answerCut, phase: .receiving) }
        if case .pipe(let pipe) = transfer.upload, pipe.hasOverrun, let declared = pipe.declared {
            return EngineFailure(.bodyTooLong(declared: declared), phase: .sending)
        }
        return nil
    }

    /// Whether the body of an HTTP/2 response without a length is incomplete: only END_STREAM ends it (RFC 9113 §8.1).
    private func isCut(_ transfer: EngineTransfer) -> Bool {
        let wire = transfer.wireHalf
        guard wire.pointee.check.isHTTP2, wire.pointee.expectsBody, wire.pointee.check.length == nil else {
            return false
        }
        if let isEnded = wire.pointee.isStreamEnded { return !isEnded }
        guard CurlVersion.current.passesCutStreams, let connection = wire.pointee.connection else { return false }
        return sockets.mayHaveCut(connection)
    }

    /// Returns the failure for a certificate that one side rejected: the server's certificate here, or the client's
    /// there.
    private func judgement(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure? {
        guard let gate = handle.gate, !transfer.wire.isHeadComplete else { return nil }
        if let refusal = gate.refusal { return EngineFailure(.untrusted(refusal), phase: .securing) }
        // In TLS 1.3 the handshake ends before the server checks the client certificate, so its alert may follow the
        // request.
        guard gate.isIdentityRefused, let alert = gate.alert else { return nil }
        let reason = EngineFailure.Reason.identityRefused(
            alert: alert, hadIdentity: gate.hasIdentity, authorities: gate.wantedAuthorities ?? [])
        return EngineFailure(reason, phase: .securing)
    }

    /// Returns the peer's protocol violation for a libcurl result that describes it only in its text.
    private func misbehaviour(
        of handle: EasyHandle, _ transfer: EngineTransfer, _ code: CURLcode, _ text: String
    ) -> EngineFailure.Reason? {
        if text.contains("chunked-encod") { return .invalidChunks(text) }
        switch code {
        case CURLE_RECV_ERROR where text.hasPrefix("Too large response headers"):
            return .headTooLarge(limit: 300 << 10)
        // libcurl's index of fields rejects a blank before the first field, and reports that as a bad argument.
        case CURLE_BAD_FUNCTION_ARGUMENT where !transfer.wire.isHeadComplete && !handle.head.isEmpty:
            return .invalidHead("one of its field lines is malformed (RFC 9112 §5)")
        // The code is CURLE_TOO_LARGE since 8.6. Unless memory is exhausted, it means that a line is too long.
        case CURLE_OUT_OF_MEMORY, CURLcode(rawValue: 100):
            let isSent = curlew_get_offset(handle.curl, CURLINFO_PRETRANSFER_TIME_T) > 0
            return isSent && !transfer.wire.isHeadComplete ? .lineTooLong(limit: 100 << 10) : nil
        default: return nil
        }
    }

    /// Whether an HTTP/2 server reported that it has not processed the request (RFC 9113 §8.7).
    ///
    /// libcurl retries such a request, each time over a new connection. When it gives up, only the text of the error
    /// shows why.
    private func isRefused(_ handle: EasyHandle, _ code: CURLcode, _ text: String) -> Bool {
        if code == CURLE_HTTP2_STREAM { return text.contains("REFUSED_STREAM") }
        return code == CURLE_RECV_ERROR && text.contains("Connection died")
            && curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) > 1
    }

    /// Returns the phase that a transfer has reached, derived from the times that libcurl measured.
    func phase(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure.Phase {
        if transfer.wire.isHeadComplete || !handle.head.isEmpty { return .receiving }
        let curl = handle.curl
        if curlew_get_offset(curl, CURLINFO_PRETRANSFER_TIME_T) == 0 {
            // The gate is created when TLS begins. libcurl sets its own time only after the handshake has succeeded.
            if handle.gate != nil { return .securing }
            if curlew_get_offset(curl, CURLINFO_NAMELOOKUP_TIME_T) == 0 { return .resolving }
            return .connecting
        }
        guard transfer.wire.bodySentAt == 0 else { return .waiting }
        return transfer.isBodyPulled ? .sending : .waiting
    }
}
