// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

extension EngineTransfer {
    // MARK: Receiving heads and trailers (called by libcurl)

    /// Receives the next header line for the transfer that uses the handle.
    ///
    /// A response has many lines, so most of them are handled without a reference to the transfer.
    @inline(__always)
    static func receiveHeadLine(_ line: UnsafeRawBufferPointer, by handle: EasyHandle) -> Bool {
        guard let loopState = handle.loopState else { return false }
        loopState.pointee.lastActivity = handle.clock.pointee
        loopState.pointee.headBytes += line.count
        if !loopState.pointee.isHeadComplete, !loopState.pointee.check.isAtStart,
            loopState.pointee.headBytes <= loopState.pointee.headLimit,
            handle.head.append(line)
        {
            let verdict = loopState.pointee.check.take(line)
            if case .more = verdict { return true }
            return handle.transfer?.judged(verdict, handle) == true
        }
        return handle.transfer?.receiveOtherLine(line, by: handle) == true
    }

    /// Receives a line that begins a head, exceeds a limit or belongs to the trailers.
    private func receiveOtherLine(_ line: UnsafeRawBufferPointer, by handle: EasyHandle) -> Bool {
        guard loopState.headBytes <= loopState.headLimit else {
            return refuse(.headTooLarge(limit: loopState.headLimit))
        }
        if loopState.isHeadComplete { return receiveTrailerLine(line) }
        if loopState.check.isAtStart { beginHead(handle) }
        guard handle.head.append(line) else { return refuse(.noResources(errno: ENOMEM)) }
        return judged(loopState.check.take(line), handle)
    }

    private func judged(_ verdict: HeadCheck.Verdict, _ handle: EasyHandle) -> Bool {
        switch verdict {
        case .more: return true
        case .end: return headEnded(handle, handle.transport)
        case .refused(let why): return refuse(.invalidHead(why))
        }
    }

    /// Makes libcurl abort, with this reason.
    func refuse(_ reason: EngineFailure.Reason) -> Bool {
        loopState.abort = reason
        return false
    }

    private func beginHead(_ handle: EasyHandle) {
        if plan.isSecure && loopState.tls == nil {
            var facts = curlew_tls_facts()
            if curlew_tls_read(handle.curl, &facts) { loopState.tls = facts }
            if plan.isMeasured || loopState.observerState != nil { readCertificate(of: handle) }
        }
        handle.stopRecording()
        if loopState.hasInformational { loopState.finalHeadBeganAt = handle.clock.pointee }
        loopState.check.fieldLimit = plan.limits.fieldCount
        let hasStreams = loopState.tls.map { $0.http2 || $0.http3 } ?? false
        loopState.check.isMultiplexed = loop.configuration.version == .http2PriorKnowledge || hasStreams
    }

    private func readCertificate(of handle: EasyHandle) {
        loopState.certificate = ConnectionJudge.ofConnection(under: handle)?.certificate(under: handle)
    }

    private func headEnded(_ handle: EasyHandle, _ transport: CurlTransport) -> Bool {
        let status = loopState.check.status
        if status < 200 {
            // Status 100 responds to libcurl's own `Expect` (RFC 9110 §15.2.1).
            if status != 100 {
                receiveInformational(RawHead(bytes: handle.head.bytes, status: status), handle.deliveries)
            }
            loopState.hasInformational = true
            loopState.finalHeadBeganAt = 0
            handle.head.clear()
            loopState.check.restart()
            return true
        }
        if status == 415 && useAlternative() { return refuse(.refusedCoding) }
        if status == 417 && disableExpect() { return refuse(.refusedExpectation) }
        receiveHead(
            RawHead(bytes: handle.head.bytes, status: status, fields: loopState.check.knownFields), handle.deliveries)
        if loopState.expectsBody && plan.isSecure && loopState.check.isDelimitedByClose {
            loopState.closingJudge = ConnectionJudge.ofConnection(under: handle)
        }
        if plan.isSecure && isBodyPulled { loopState.uploadJudge = ConnectionJudge.ofConnection(under: handle) }
        if !loopState.isHeadFinal, plan.isSecure, loopState.certificate == nil { readCertificate(of: handle) }
        if let origin = loopState.origin {
            if let connection = loopState.connection {
                let version: SocketTable.Version = loopState.check.isMultiplexed ? .http2 : .http1
                transport.sockets.learn(connection, loopState.tls?.http3 == true ? .http3 : version)
            }
            if loopState.check.isMultiplexed {
                transport.markShared(origin)
                holdUpload(status, transport)
            } else if !isExclusive {
                transport.markUnshared(origin)
            }
        }
        applyPauses()
        return true
    }

    /// Records the head of the final response.
    func receiveHead(_ head: RawHead, _ deliveries: Deliveries) {
        loopState.isHeadComplete = true
        loopState.headAt = deliveries.now
        loopState.measuredAt = 0
        loopState.expectsBody = plan.method != "HEAD" && head.status != 204 && head.status != 304
        if !loopState.expectsBody { loopState.counters.expectedToReceive = 0 }
        if case .bytes(let bytes) = upload, !isBodyPulled {
            // A small body is sent with the head; libcurl does not request it separately.
            loopState.counters.sent = Int64(bytes.count)
        }
        let isFinal = !plan.interest.includes(status: head.status, head.fields)
        loopState.isHeadFinal = isFinal
        let hold = isFinal ? nil : loop.holdWhileClosing()
        shared.withLock { shared in
            shared.head = head
            shared.isHeadFinal = isFinal
            if let hold { shared.hold = hold }
        }
        sendDeferredSentEvent()
        send(.head(head))
        deliveries.markDirty(self)
    }

    /// Keeps an informational head for the reader.
    func receiveInformational(_ head: RawHead, _ deliveries: Deliveries) {
        shared.withLock { shared in
            if shared.informational.count < EngineTransfer.informationalKept { shared.informational.append(head) }
        }
        sendDeferredSentEvent()
        send(.informational(head))
        deliveries.markDirty(self)
    }

    private func receiveTrailerLine(_ line: UnsafeRawBufferPointer) -> Bool {
        if loopState.trailers.isEmpty { loopState.check.beginTrailers() }
        switch loopState.check.takeTrailer(line) {
        case .more: loopState.trailers.append(contentsOf: line)
        case .end: break
        case .refused(let why): return refuse(.invalidTrailers(why))
        }
        return true
    }
}
