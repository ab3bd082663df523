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
    static func receiveHeadLine(_ line: UnsafeRawBufferPointer, by handle: EasyHandle) -> Bool {
        guard let wire = handle.wire else { return false }
        wire.pointee.lastActivity = handle.clock.pointee
        wire.pointee.headBytes += line.count
        if !wire.pointee.isHeadComplete, !wire.pointee.check.isAtStart,
            wire.pointee.headBytes <= wire.pointee.headLimit,
            handle.head.append(line)
        {
            let verdict = wire.pointee.check.take(line)
            if case .more = verdict { return true }
            return handle.transfer?.judged(verdict, handle) == true
        }
        return handle.transfer?.receiveOtherLine(line, by: handle) == true
    }

    /// Receives a line that begins a head, exceeds a limit or belongs to the trailers.
    private func receiveOtherLine(_ line: UnsafeRawBufferPointer, by handle: EasyHandle) -> Bool {
        guard wire.headBytes <= wire.headLimit else { return refuse(.headTooLarge(limit: wire.headLimit)) }
        if wire.isHeadComplete { return receiveTrailerLine(line) }
        if wire.check.isAtStart { beginHead(handle) }
        guard handle.head.append(line) else { return refuse(.noResources(errno: ENOMEM)) }
        return judged(wire.check.take(line), handle)
    }

    private func judged(_ verdict: HeadCheck.Verdict, _ handle: EasyHandle) -> Bool {
        switch verdict {
        case .more: return true
        case .end: return headEnded(handle, handle.domain.transport)
        case .refused(let why): return refuse(.invalidHead(why))
        }
    }

    /// Makes libcurl abort, with this reason.
    func refuse(_ reason: EngineFailure.Reason) -> Bool {
        wire.abort = reason
        return false
    }

    private func beginHead(_ handle: EasyHandle) {
        if plan.isSecure && wire.tls == nil {
            var facts = curlew_tls_facts()
            if curlew_tls_read(handle.curl, &facts) { wire.tls = facts }
            if plan.isMeasured {
                wire.certificate = ConnectionJudge.ofConnection(under: handle)?.certificate(under: handle)
            }
        }
        handle.stopRecording()
        if wire.hasInformational { wire.finalHeadBeganAt = handle.clock.pointee }
        wire.check.fieldLimit = plan.fieldLimit
        wire.check.isHTTP2 = loop.configuration.version == .http2PriorKnowledge || wire.tls?.http2 == true
    }

    private func headEnded(_ handle: EasyHandle, _ transport: CurlTransport) -> Bool {
        let status = wire.check.status
        if status < 200 {
            receiveInformational(status, handle, transport)
            return true
        }
        if status == 415 && useAlternative() { return refuse(.refusedCoding) }
        if status == 417 && disableExpect() { return refuse(.refusedExpectation) }
        wire.isHeadComplete = true
        wire.headAt = transport.now
        wire.measuredAt = 0
        wire.expectsBody = plan.method != "HEAD" && status != 204 && status != 304
        if !wire.expectsBody { wire.counters.expectedToReceive = 0 }
        if wire.expectsBody && plan.isSecure && wire.check.isDelimitedByClose {
            wire.closingJudge = ConnectionJudge.ofConnection(under: handle)
        }
        if plan.isSecure && isBodyPulled { wire.uploadJudge = ConnectionJudge.ofConnection(under: handle) }
        if case .bytes(let bytes) = upload, !isBodyPulled {
            // A small body is sent with the head; libcurl does not ask for it.
            wire.counters.sent = Int64(bytes.count)
        }
        let head = RawHead(
            bytes: handle.head.bytes, status: status, isEncoded: wire.check.isEncoded,
            hasLocation: wire.check.hasLocation)
        wire.isRedirecting = plan.holdsRedirects && head.isRedirect
        shared.withLock { shared in
            shared.head = head
            shared.isRedirecting = wire.isRedirecting
        }
        sendDeferredSentEvent()
        tell(.head(head))
        if let origin = wire.origin {
            if let connection = wire.connection {
                transport.sockets.learn(connection, wire.check.isHTTP2 ? .http2 : .http1)
            }
            if wire.check.isHTTP2 {
                transport.markShared(origin)
                holdUpload(status, transport)
            } else if !isExclusive {
                transport.markUnshared(origin)
            }
        }
        transport.markDirty(self)
        applyPauses()
        return true
    }

    /// Keeps an informational head for the reader; status 100 responds to libcurl's own `Expect` (RFC 9110 §15.2.1).
    private func receiveInformational(_ status: Int, _ handle: EasyHandle, _ transport: CurlTransport) {
        if status != 100 {
            let head = RawHead(bytes: handle.head.bytes, status: status)
            shared.withLock { shared in
                if shared.informational.count < EngineTransfer.informationalKept { shared.informational.append(head) }
            }
            sendDeferredSentEvent()
            tell(.informational(head))
            transport.markDirty(self)
        }
        wire.hasInformational = true
        wire.finalHeadBeganAt = 0
        handle.head.clear()
        wire.check.restart()
    }

    private func receiveTrailerLine(_ line: UnsafeRawBufferPointer) -> Bool {
        if wire.trailers.isEmpty { wire.check.beginTrailers() }
        switch wire.check.takeTrailer(line) {
        case .more: wire.trailers.append(contentsOf: line)
        case .end: break
        case .refused(let why): return refuse(.invalidTrailers(why))
        }
        return true
    }
}
