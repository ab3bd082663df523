// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

extension EngineTransfer {
    /// The values that other threads may have changed since the loop last read them.
    var requestedState: (collects: Bool, isPaused: Bool, isFlowPaused: Bool, buffered: Int, priority: Int) {
        shared.withLock { ($0.collects, $0.lifecycle.wantsPause, $0.isFlowPaused, $0.buffered, $0.priority) }
    }

    /// Takes over what other threads have requested since: pause, the stream's reader, more bytes of the body.
    func applyRequests(_ deliveries: Deliveries) {
        let requestedState = requestedState
        if !requestedState.collects, let chunk = loopState.collected?.takeChunk() {
            loopState.chunks.append(chunk)
            loopState.unpublished += chunk.count
        }
        if !requestedState.collects { loopState.discardCollected() }
        if loopState.isUserPaused && !requestedState.isPaused { loopState.resumedAt = deliveries.now }
        loopState.isUserPaused = requestedState.isPaused
        loopState.isFlowPaused = requestedState.isFlowPaused
        loopState.isStarved = false
        deliveries.markDirty(self)
        loopState.buffered = requestedState.buffered
        applyPauses()
    }

    var wantsPause: Bool { shared.withLock { $0.lifecycle.wantsPause } }
    var isBodyDiscarded: Bool { shared.withLock { $0.isBodyDiscarded } }
    var priorityNow: Int { shared.withLock { $0.priority } }
    var startedAt: UInt64 { shared.withLock { $0.counters.startedAt } }

    /// Moves to running and returns whether the body is collected; nil if the transfer is paused or has ended.
    func tryAdmission() -> Bool? {
        shared.withLock { $0.lifecycle.on(.admit) ? $0.collects : nil }
    }

    /// Returns whether the response is complete although the request body is not, so that sending the rest is
    /// pointless.
    ///
    /// libcurl would keep sending until the end of the body, or forever if the server does not read.
    func checkEarlyResponse() -> Bool {
        guard loopState.isHeadComplete, !loopState.isUserPaused, let handle = loopState.handle else { return false }
        // libcurl does not request the bytes of an empty body.
        if upload.length == 0 { return false }
        if loopState.expectsBody {
            let length = loopState.check.length ?? -1
            guard length >= 0 ? loopState.counters.received >= length : loopState.hasResponseEnded else { return false }
        }
        if isBodyPulled && loopState.bodySentAt == 0 { return true }
        if loopState.responseCompleteAt == nil {
            loopState.responseCompleteAt = handle.deliveries.now
            handle.transport.scheduleSweep(self)
        }
        return false
    }

    /// Records that libcurl has stopped reading while it sends, or would send if the body's source had bytes.
    ///
    /// Over HTTP/1.1 this means that a chunked response is complete, unless the server has ended the connection:
    /// libcurl would notice only later that the last chunk is missing.
    func noteReadingStopped(from descriptor: CInt, sends: Bool) {
        guard !loopState.hasResponseEnded, sends || loopState.isSendingPaused && loopState.bodySentAt == 0 else {
            return
        }
        guard loopState.isHeadComplete, !loopState.isReceivingPaused, !loopState.isUserPaused,
            loopState.check.isChunked,
            !loopState.check.isMultiplexed,
            loopState.uploadJudge?.isEndSignalled != true, !curlew_has_ended(descriptor)
        else { return }
        loopState.hasResponseEnded = true
        loopState.deliveries?.markDirty(self)
    }

    /// Holds back the rest of the body once an HTTP/2 response has begun, until no more bytes arrive.
    ///
    /// libcurl 7.88 drops received bytes when it sends on a stream that the server has closed. While the body is held
    /// back, libcurl receives all bytes; the next attempt to send shows whether the stream is closed, and then the
    /// response is complete.
    func holdUpload(_ status: Int, _ transport: CurlTransport) {
        var isHeld = isBodyPulled && loopState.bodySentAt == 0
        // For an error response, libcurl decides to end the stream. For the server this is the end of the body, unless
        // it knows the length from a header.
        if isHeld && status >= 400 {
            if case .pipe(let pipe) = upload, pipe.length == nil {
                loopState.handle?.keepSending()
            } else {
                isHeld = false
            }
        }
        loopState.isUploadHeld = isHeld
        transport.scheduleSweep(self)
    }

    /// Resumes a body that was held back, which may reveal that its stream is closed.
    func releaseUpload() {
        guard loopState.isUploadHeld else { return }
        loopState.isUploadHeld = false
        loopState.pulls = 0
        applyPauses()
    }

    /// Whether the response was complete when libcurl found its stream closed without an error while sending the body.
    func isResponseComplete(by handle: EasyHandle) -> Bool {
        guard loopState.isHeadComplete, isBodyPulled else { return false }
        if !loopState.expectsBody { return true }
        let length = loopState.check.length ?? -1
        if length >= 0 { return loopState.counters.received >= length }
        // The first attempt to send after the hold fails; a later attempt may have dropped received bytes.
        return loopState.bodySentAt == 0 && loopState.pulls <= 1 && loopState.isStreamEnded != false
    }

    /// Whether the transfer uses its connection exclusively.
    var isExclusive: Bool { plan.ownsConnection || loopState.usesHTTP1 }

    /// Removes the transfer from the users of its connection.
    func leaveConnection() {
        guard let connection = loopState.connection, let origin = loopState.origin, let handle = loopState.handle else {
            return
        }
        loopState.connection = nil
        handle.transport.sockets.leave(connection, from: origin)
    }

    // MARK: The request to send, on the loop: as planned, or as the server requires

    var upload: TransferPlan.Upload {
        if loopState.usesAlternative, let alternative = plan.alternative { return alternative.upload }
        return plan.upload
    }

    var lines: HeaderLines {
        if let quiet = loopState.linesWithoutExpect { return quiet }
        if loopState.usesAlternative, let alternative = plan.alternative { return alternative.lines }
        return plan.lines
    }

    /// Whether libcurl requests the body in chunks, instead of sending it together with the head.
    var isBodyPulled: Bool {
        if case .none = plan.upload { return false }
        let expectsContinue =
            loopState.usesAlternative ? plan.alternative?.expectsContinue ?? false : plan.expectsContinue
        switch upload {
        case .none: return false
        case .bytes(let bytes):
            return bytes.count >= EasyHandle.smallBody || expectsContinue || isSendingThrottled
        case .pipe: return true
        }
    }

    /// Whether a bandwidth limit must count the bytes sent.
    private var isSendingThrottled: Bool {
        loop.configuration.throttle.sending != nil || plan.limits.throttle?.sending != nil
    }

    /// Stops sending `Expect`, because the server does not support it (417, RFC 9110 §15.5.18); returns false if it is
    /// not in use.
    func disableExpect() -> Bool {
        guard loopState.linesWithoutExpect == nil, isBodyPulled else { return false }
        guard loopState.usesAlternative ? plan.alternative?.expectsContinue == true : plan.expectsContinue else {
            return false
        }
        loopState.linesWithoutExpect = HeaderLines(lines, without: "Expect")
        return true
    }

    /// Uses the alternative from now on, because the server rejected the content coding of the body (415, RFC 9110
    /// §15.5.16); returns false if there is no alternative or it is already in use.
    func useAlternative() -> Bool {
        guard let alternative = plan.alternative, !loopState.usesAlternative else { return false }
        if case .pipe(let pipe) = plan.upload { pipe.close() }
        loopState.usesAlternative = true
        if loopState.linesWithoutExpect != nil {
            loopState.linesWithoutExpect = HeaderLines(alternative.lines, without: "Expect")
        }
        if case .pipe(let pipe) = alternative.upload { pipe.attach(to: self) }
        shared.withLock { $0.counters.expectedToSend = alternative.upload.length }
        return true
    }
}
