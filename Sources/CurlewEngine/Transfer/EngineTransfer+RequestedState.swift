// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

extension EngineTransfer {
    /// The values that other threads may have changed since the loop last read them.
    var requestedState: (collects: Bool, isPaused: Bool, isFlowPaused: Bool, buffered: Int, priority: Int) {
        shared.withLock { ($0.collects, $0.lifecycle.wantsPause, $0.isFlowPaused, $0.buffered, $0.priority) }
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
        guard wire.isHeadComplete, !wire.isUserPaused, let handle = wire.handle else { return false }
        // libcurl does not ask for the bytes of an empty body.
        if upload.length == 0 { return false }
        if wire.expectsBody {
            let length = wire.check.length ?? -1
            guard length >= 0 ? wire.counters.received >= length : wire.hasResponseEnded else { return false }
        }
        if isBodyPulled && wire.bodySentAt == 0 { return true }
        if wire.responseCompleteAt == nil {
            let transport = handle.domain.transport
            wire.responseCompleteAt = transport.now
            transport.scheduleSweep(self)
        }
        return false
    }

    /// Records that libcurl has stopped reading while it sends, or would send if the body's source had bytes.
    ///
    /// Over HTTP/1.1 this means that a chunked response is complete, unless the server has ended the connection:
    /// libcurl would notice only later that the last chunk is missing.
    func noteReadingStopped(from descriptor: CInt, sends: Bool) {
        guard !wire.hasResponseEnded, sends || wire.isSendingPaused && wire.bodySentAt == 0 else { return }
        guard wire.isHeadComplete, !wire.isReceivingPaused, !wire.isUserPaused, wire.check.isChunked,
            !wire.check.isHTTP2,
            wire.uploadJudge?.isEndSignalled != true, !curlew_has_ended(descriptor)
        else { return }
        wire.hasResponseEnded = true
        wire.handle?.domain.transport.markDirty(self)
    }

    /// Holds back the rest of the body once an HTTP/2 response has begun, until no more bytes arrive.
    ///
    /// libcurl 7.88 drops received bytes when it sends on a stream that the server has closed. While the body is held
    /// back, libcurl receives all bytes; the next attempt to send shows whether the stream is closed, and then the
    /// response is complete.
    func holdUpload(_ status: Int, _ transport: CurlTransport) {
        var isHeld = isBodyPulled && wire.bodySentAt == 0
        // For an error response, libcurl decides to end the stream. For the server this is the end of the body, unless
        // it knows the length from a header.
        if isHeld && status >= 400 {
            if case .pipe(let pipe) = upload, pipe.length == nil { wire.handle?.keepSending() } else { isHeld = false }
        }
        wire.isUploadHeld = isHeld
        transport.scheduleSweep(self)
    }

    /// Resumes a body that was held back, which may reveal that its stream is closed.
    func releaseUpload() {
        guard wire.isUploadHeld else { return }
        wire.isUploadHeld = false
        wire.pulls = 0
        applyPauses()
    }

    /// Whether the response was complete when libcurl found its stream closed without an error while sending the body.
    func isResponseComplete(by handle: EasyHandle) -> Bool {
        guard wire.isHeadComplete, isBodyPulled else { return false }
        if !wire.expectsBody { return true }
        let length = wire.check.length ?? -1
        if length >= 0 { return wire.counters.received >= length }
        // The first attempt to send after the hold fails; a later attempt may have dropped received bytes.
        return wire.bodySentAt == 0 && wire.pulls <= 1 && wire.isStreamEnded != false
    }

    /// Whether the transfer uses its connection exclusively.
    var isExclusive: Bool { plan.ownsConnection || wire.usesHTTP1 }

    /// Removes the transfer from the users of its connection.
    func leaveConnection() {
        guard let connection = wire.connection, let origin = wire.origin, let handle = wire.handle else { return }
        wire.connection = nil
        handle.domain.transport.sockets.leave(connection, from: origin)
    }

    // MARK: The request to send, on the loop: as planned, or as the server requires

    var upload: TransferPlan.Upload {
        if wire.usesAlternative, let alternative = plan.alternative { return alternative.upload }
        return plan.upload
    }

    var lines: HeaderLines {
        if let quiet = wire.linesWithoutExpect { return quiet }
        if wire.usesAlternative, let alternative = plan.alternative { return alternative.lines }
        return plan.lines
    }

    /// Whether libcurl asks for the body in chunks, instead of sending it together with the head.
    var isBodyPulled: Bool {
        let expectsContinue = wire.usesAlternative ? plan.alternative?.expectsContinue ?? false : plan.expectsContinue
        switch upload {
        case .none: return false
        case .bytes(let bytes):
            return bytes.count >= EasyHandle.smallBody || expectsContinue || isSendingThrottled
        case .pipe: return true
        }
    }

    /// Whether a bandwidth limit must count the bytes sent.
    private var isSendingThrottled: Bool {
        loop.configuration.bandwidth.sending != nil || plan.bandwidth.sending != nil
    }

    /// Stops sending `Expect`, because the server does not support it (417, RFC 9110 §15.5.18); returns false if it is
    /// not in use.
    func disableExpect() -> Bool {
        guard wire.linesWithoutExpect == nil, isBodyPulled else { return false }
        guard wire.usesAlternative ? plan.alternative?.expectsContinue == true : plan.expectsContinue else {
            return false
        }
        wire.linesWithoutExpect = HeaderLines(lines, without: "Expect")
        return true
    }

    /// Uses the alternative from now on, because the server rejected the content coding of the body (415, RFC 9110
    /// §15.5.16); returns false if there is no alternative or it is already in use.
    func useAlternative() -> Bool {
        guard let alternative = plan.alternative, !wire.usesAlternative else { return false }
        if case .pipe(let pipe) = plan.upload { pipe.close() }
        wire.usesAlternative = true
        if wire.linesWithoutExpect != nil {
            wire.linesWithoutExpect = HeaderLines(alternative.lines, without: "Expect")
        }
        if case .pipe(let pipe) = alternative.upload { pipe.attach(to: self) }
        shared.withLock { $0.counters.expectedToSend = alternative.upload.length }
        return true
    }
}
