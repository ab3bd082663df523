// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

extension EngineTransfer {
    /// What others may have changed since the loop last looked.
    var wishes: (collects: Bool, isPaused: Bool, isFlowPaused: Bool, buffered: Int, priority: Int) {
        shared.withLock { ($0.collects, $0.lifecycle.wantsPause, $0.isFlowPaused, $0.buffered, $0.priority) }
    }

    var wantsPause: Bool { shared.withLock { $0.lifecycle.wantsPause } }
    var isLetGo: Bool { shared.withLock { $0.isLetGo } }
    var priorityNow: Int { shared.withLock { $0.priority } }
    var startedAt: UInt64 { shared.withLock { $0.counters.startedAt } }

    /// Makes the move to running and says whether the body is collected; nil when the transfer is paused or over.
    func tryAdmission() -> Bool? {
        shared.withLock { $0.lifecycle.on(.admit) ? $0.collects : nil }
    }

    /// Whether the answer is whole although the body is not all sent: nothing would be gained by sending the rest.
    ///
    /// libcurl would go on until it is all gone, or for ever when the server reads no more.
    var isAnsweredEarly: Bool {
        guard wire.isHeadComplete, !wire.isUserPaused, let handle = wire.handle else { return false }
        // libcurl does not ask for the bytes of an empty body.
        if upload.length == 0 { return false }
        if wire.expectsBody {
            let length = wire.check.length ?? -1
            guard length >= 0 ? wire.counters.received >= length : wire.hasAnswerEnded else { return false }
        }
        if isBodyPulled && wire.bodySentAt == 0 { return true }
        if wire.answeredAt == nil {
            let transport = handle.domain.transport
            wire.answeredAt = transport.now
            transport.scheduleSweep(self)
        }
        return false
    }

    /// Takes note that libcurl reads no more while it sends, or would if the body's source gave something.
    ///
    /// Over HTTP/1.1 that means that a chunked answer is whole, unless the server has ended the connection: libcurl would
    /// see only later that the last chunk is missing.
    func readsNoMore(from descriptor: CInt, sends: Bool) {
        guard !wire.hasAnswerEnded, sends || wire.isSendingPaused && wire.bodySentAt == 0 else { return }
        guard wire.isHeadComplete, !wire.isReceivingPaused, !wire.isUserPaused, wire.check.isChunked,
            !wire.check.isHTTP2,
            wire.uploadGate?.isEndAnnounced != true, !curlew_has_ended(descriptor)
        else { return }
        wire.hasAnswerEnded = true
        wire.handle?.domain.transport.markDirty(self)
    }

    /// Holds a body back whose answer has begun, over HTTP/2, until nothing more comes.
    ///
    /// libcurl 7.88 drops received bytes when it sends on a stream that the server has closed. Held, it takes them all;
    /// the next attempt to send tells whether the stream is closed, and then the answer is whole.
    func holdUpload(_ status: Int, _ transport: CurlTransport) {
        var isHeld = isBodyPulled && wire.bodySentAt == 0
        // Of an error libcurl itself concludes that no more is wanted, and ends the stream. To the server that is the end
        // of the body, unless it was told a length.
        if isHeld && status >= 400 {
            if case .pipe(let pipe) = upload, pipe.length == nil { wire.handle?.keepSending() } else { isHeld = false }
        }
        wire.isUploadHeld = isHeld
        transport.scheduleSweep(self)
    }

    /// Lets a body that was held go on, or find out that its stream is closed.
    func releaseUpload() {
        guard wire.isUploadHeld else { return }
        wire.isUploadHeld = false
        wire.pulls = 0
        applyPauses()
    }

    /// Whether an answer was whole when libcurl found its stream closed, without an error, as it sent the body.
    func isAnsweredWhole(by handle: EasyHandle) -> Bool {
        guard wire.isHeadComplete, isBodyPulled else { return false }
        if !wire.expectsBody { return true }
        let length = wire.check.length ?? -1
        if length >= 0 { return wire.counters.received >= length }
        // The first attempt after the hold fails; a later one may have dropped bytes.
        return wire.bodySentAt == 0 && wire.pulls <= 1 && wire.isStreamEnded != false
    }

    /// Whether it shares its connection with nobody.
    var isAlone: Bool { plan.ownsConnection || wire.isByHTTP1 }

    /// Counts the transfer out of those that use its connection.
    func part() {
        guard let connection = wire.connection, let origin = wire.origin, let handle = wire.handle else { return }
        wire.connection = nil
        handle.domain.transport.sockets.part(connection, from: origin)
    }

    // MARK: What is sent, on the loop: as planned, or as the server wants it

    var upload: TransferPlan.Upload {
        if wire.usesAlternative, let alternative = plan.alternative { return alternative.upload }
        return plan.upload
    }

    var lines: HeaderLines {
        if let quiet = wire.linesWithoutExpect { return quiet }
        if wire.usesAlternative, let alternative = plan.alternative { return alternative.lines }
        return plan.lines
    }

    /// Whether libcurl asks for the body bit by bit, instead of sending it together with the head.
    var isBodyPulled: Bool {
        let asksFirst = wire.usesAlternative ? plan.alternative?.asksFirst ?? false : plan.asksFirst
        switch upload {
        case .none: return false
        case .bytes(let bytes):
            return bytes.count >= EasyHandle.smallBody || asksFirst || isSendingThrottled
        case .pipe: return true
        }
    }

    /// Whether a limit of bandwidth has to see what it sends.
    private var isSendingThrottled: Bool {
        loop.configuration.bandwidth.sending != nil || plan.bandwidth.sending != nil
    }

    /// Asks no more before the body is sent, unless that is so: the server does not know the question (417, RFC 9110
    /// §15.5.18).
    func stopAsking() -> Bool {
        guard wire.linesWithoutExpect == nil, isBodyPulled else { return false }
        guard wire.usesAlternative ? plan.alternative?.asksFirst == true : plan.asksFirst else { return false }
        wire.linesWithoutExpect = HeaderLines(lines, without: "Expect")
        return true
    }

    /// Takes the alternative from now on, unless there is none or it is in use: the server refused the coding of the body
    /// (415, RFC 9110 §15.5.16).
    func takeAlternative() -> Bool {
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
