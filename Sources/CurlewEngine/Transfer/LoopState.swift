// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The half of a transfer that only the loop thread touches.
///
/// Flags are next to other flags where possible, so that they share a word of memory.
struct LoopState {
    var handle: EasyHandle?
    /// The deliveries of the loop while the transfer has a connection or opens one.
    unowned(unsafe) var deliveries: Deliveries?
    var origin: Origin?
    var check = HeadCheck()
    /// The bytes of all heads and of the trailers, and their limit.
    var headBytes = 0
    let headLimit: Int
    var isHeadComplete = false
    /// Whether the chain need not see the head; true before the head.
    var isHeadFinal = true
    var expectsBody = true
    /// Whether the response is an event stream; nil before the first check.
    var isEventStream: Bool?
    /// Whether END_STREAM has arrived; nil before the head, and if the HTTP/2 frames are not visible.
    var isStreamEnded: Bool?
    /// Whether libcurl has stopped reading while it still sends.
    var hasResponseEnded = false
    /// Whether an informational response arrived, and the time at which the first line after it arrived; 0 before that.
    var hasInformational = false
    var finalHeadBeganAt: UInt64 = 0
    /// The time at which the head was complete.
    var headAt: UInt64 = 0
    /// The lines after the body, without the final empty line.
    var trailers: [UInt8] = []
    /// The judge of a connection whose end delimits the body.
    var closingJudge: ConnectionJudge?
    /// The body of a transfer that collects it; nil for one that is streamed.
    var collected: CollectedBody?
    var slab: Slab?
    /// The start of the part of `slab` that was not published yet.
    var slabStart = 0
    var chunks: [Chunk] = []
    /// The bytes received and not yet published, the number published last, and the bytes that the reader had not taken
    /// when last checked.
    var unpublished = 0
    var burst = 0
    var buffered = 0
    var counters = Counters()
    var isDirty = false
    var isProgressDeferred = false
    var lastProgress: UInt64 = 0
    /// The directions in which libcurl is paused.
    var isReceivingPaused = false
    var isSendingPaused = false
    var isStarved = false
    var isUserPaused = false
    var isFlowPaused = false
    /// Whether the body is held back while a response that arrived before its end is received.
    var isUploadHeld = false
    /// Whether other transfers have to continue first, because this one has received its maximum for the turn.
    var isTurnOver = false
    /// The transfer's own limit, whether each direction has exceeded a limit, and whether the transfer waits for the
    /// limit.
    var throttle: Throttle?
    var isReceivingLimited = false
    var isSendingLimited = false
    var isLimited = false
    /// The turn in which bytes were last received, and their number.
    var turn: UInt64 = 0
    var inTurn = 0
    /// The reason why the engine made libcurl abort, set before libcurl reports the abort.
    var abort: EngineFailure.Reason?
    var bodyOffset = 0
    var bodySentAt: UInt64 = 0
    /// The times at which the transfer got its slot and at which libcurl started it, after the look-up and failed
    /// attempts.
    var admittedAt: UInt64 = 0
    var launchedAt: UInt64 = 0
    /// The addresses given to libcurl.
    var name: ResolvedName?
    var resumedAt: UInt64 = 0
    /// The time since which the rate is measured, and the number of bytes moved until then.
    var measuredAt: UInt64 = 0
    var measured: Int64 = 0
    /// The bytes of a long body that had left this machine when a time limit was last due, and the time of that check.
    var sentSeen: Int64 = 0
    var sendingSeenAt: UInt64 = 0
    /// The number of retries by the engine, and the number of times that libcurl began to send the request since the
    /// last retry.
    var restarts = 0
    var sends = 0
    /// The number of retries caused by the connection.
    var connectionRetries = 0
    /// The number of retries after a refusal at which libcurl gave up.
    var refusals = 0
    /// The time at which libcurl was last made to check a silent HTTP/2 connection.
    var pokedAt: UInt64 = 0
    /// The header lines without `Expect`, used after the server has rejected it.
    var linesWithoutExpect: HeaderLines?
    /// The failure that caused a retry over HTTP/1.1, and whether the retry uses HTTP/1.1.
    var failureOverHTTP2: EngineFailure?
    var usesHTTP1 = false
    /// Whether the next attempt only connects first.
    var connectsFirst = false
    /// Whether the retry needs a new connection, because the last one failed.
    var needsFreshConnection = false
    /// Whether the transfer opens another connection, because the existing ones have no capacity for all transfers.
    var opensConnection = false
    /// Whether the domain has no idle connection to the origin.
    var hasNoIdleConnection = false
    /// The connection over which the request was last sent.
    var connection: SocketTable.Connection?
    /// Whether that connection was known to use HTTP/2.
    var isShared = false
    /// The number of times that libcurl requested body bytes, counted anew when a held-back body resumes.
    var pulls = 0
    /// The judge of the TLS connection over which a long body is sent.
    var uploadJudge: ConnectionJudge?
    var lastActivity: UInt64 = 0
    /// The sequence number in the queue of the origin, and the time since which the transfer is in the queue.
    var sequenceNumber: UInt64 = 0
    var inQueueSince: UInt64 = 0
    /// The time at which the response and the handed-over body were complete, although not all bytes were sent.
    var responseCompleteAt: UInt64?
    var isInQueue = false
    var hasSlot = false
    /// Whether the uncompressed body is sent, because the server rejected the content coding.
    var usesAlternative = false
    var priority = 0
    var tls: curlew_tls_facts?
    /// The server's own certificate, if the transfer is measured.
    var certificate: X509Certificate?
    /// The observers of the run; nil without an observer.
    var observerState: ObserverState?
    /// The reason why a socket could not be used; nil if none failed.
    var socketFailure: SocketFailure?

    /// An object, because few transfers have such a failure.
    final class SocketFailure {
        let reason: EngineFailure.Reason

        init(_ reason: EngineFailure.Reason) { self.reason = reason }
    }

    init(_ plan: borrowing TransferPlan) {
        headLimit = plan.limits.headSize
        throttle = plan.limits.throttle
        needsFreshConnection = plan.needsNewConnection
    }

    var isFresh: Bool { needsFreshConnection || opensConnection || hasNoIdleConnection }

    /// The time since which the connect timeout counts: it includes the look-up, but starts anew for each retry.
    var connectingSince: UInt64 { restarts > 0 ? launchedAt : admittedAt }

    /// Stores the addresses of one of the hosts of an origin.
    mutating func setAddresses(_ found: ResolvedName, of peer: Origin.Peer, at origin: Origin) {
        let proxy = name ?? ResolvedName([], until: found.until)
        name = peer == origin.peer ? found : proxy.with(server: found)
    }

    mutating func discardCollected() {
        collected?.clear()
        collected = nil
    }

    /// Discards the part of a head that arrived before the connection broke.
    mutating func forgetHead() {
        hasInformational = false
        finalHeadBeganAt = 0
        handle?.head.clear()
        check = HeadCheck()
        headBytes = 0
        tls = nil
        certificate = nil
    }

    /// Resets the state for a retry, before any part of the response has reached the reader.
    mutating func beginRetry(at now: UInt64) {
        forgetHead()
        hasNoIdleConnection = false
        slab = nil
        chunks = []
        counters = Counters()
        bodyOffset = 0
        bodySentAt = 0
        socketFailure = nil
        abort = nil
        responseCompleteAt = nil
        hasResponseEnded = false
        uploadJudge = nil
        measuredAt = 0
        isUploadHeld = false
        isReceivingPaused = false
        isSendingPaused = false
        isStarved = false
        isTurnOver = false
        launchedAt = now
        lastActivity = now
        restarts += 1
        sends = 0
    }
}
