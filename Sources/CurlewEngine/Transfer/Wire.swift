// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The half of a transfer that the loop thread alone touches.
struct Wire {
    var handle: EasyHandle?
    var origin: Origin?
    var check = HeadCheck()
    /// Bytes of all heads and of the trailers, and how many there may be.
    var headBytes = 0
    let headLimit: Int
    var isHeadComplete = false
    /// The head is a redirect that the plan may follow.
    var leadsElsewhere = false
    /// When it was.
    var headAt: UInt64 = 0
    /// Whether an informational response came, and when the first line of the response after it did; 0 before that.
    var hasInformational = false
    var finalHeadBeganAt: UInt64 = 0
    /// Lines after the body, without the last, empty one.
    var trailers: [UInt8] = []
    /// The judge of a connection whose end ends the body.
    var closingGate: TrustGate?
    var expectsBody = true
    /// Whether END_STREAM has come; nil before the head, and where the frames of HTTP/2 are not seen.
    var isStreamEnded: Bool?
    var collected: CollectedBody?
    var slab: Slab?
    /// Where the part of `slab` that was not handed over begins.
    var slabStart = 0
    var chunks: [Chunk] = []
    /// Bytes received and not yet handed over, as many as were handed over last, and bytes the reader had not taken when last
    /// asked.
    var unpublished = 0
    var burst = 0
    var buffered = 0
    var counters = Counters()
    var isDirty = false
    var isOwing = false
    var lastProgress: UInt64 = 0
    /// What libcurl was told to pause.
    var isReceivingPaused = false
    var isSendingPaused = false
    var isStarved = false
    var isUserPaused = false
    var isFlowPaused = false
    /// What it may take by itself, whether it has taken too much for now, and whether it stands in line for more.
    var throttle: Throttle?
    var isReceivingLimited = false
    var isSendingLimited = false
    var isLimited = false
    /// The turn in which it last received, how much that was, and whether it was so much that others come first.
    var turn: UInt64 = 0
    var inTurn = 0
    var isTurnOver = false
    /// Why we made libcurl give up, known before libcurl says so.
    var abort: EngineFailure.Reason?
    var bodyOffset = 0
    var bodySentAt: UInt64 = 0
    /// When the transfer got its place, and when libcurl began with it: after a look-up, and after vain attempts.
    var admittedAt: UInt64 = 0
    var launchedAt: UInt64 = 0
    var hasPlace = false
    /// The addresses that libcurl is given.
    var name: ResolvedName?
    var resumedAt: UInt64 = 0
    /// Since when the rate is measured, and what had moved by then.
    var measuredAt: UInt64 = 0
    var measured: Int64 = 0
    /// How much of a long body had left this machine when a limit of time was last due, and when that was.
    var sentSeen: Int64 = 0
    var sendingSeenAt: UInt64 = 0
    /// Whether the response is a stream of events; nil until the first question.
    var isEventStream: Bool?
    /// How often the request was begun again by us, and how often libcurl began to send it since.
    var restarts = 0
    var sends = 0
    /// How often it was because of the connection.
    var repairs = 0
    /// How often it was after a refusal that libcurl gave up at, and whether a connection is made first.
    var refusals = 0
    var connectsFirst = false
    /// The body waits while an answer that came before its end is received.
    var isUploadHeld = false
    /// When libcurl was last made to look at a silent HTTP/2 connection.
    var nudgedAt: UInt64 = 0
    /// The body is sent as it is, after the server has refused its coding.
    var usesAlternative = false
    /// What is sent after the server has refused to be asked.
    var linesWithoutExpect: HeaderLines?
    /// The request is sent again by HTTP/1.1, and why.
    var isByHTTP1 = false
    var failureOverHTTP2: EngineFailure?
    /// The request is sent again because of its connection.
    var needsFreshConnection = false
    /// It opens one more connection, since those that there are have no room for all.
    var opensConnection = false
    /// There is no idle connection where it goes.
    var findsNoneIdle = false
    /// Over which the request was last sent.
    var connection: SocketTable.Connection?
    /// Whether that one was known to speak HTTP/2.
    var isShared = false
    /// How often libcurl asked for bytes since.
    var pulls = 0
    /// Of the connection that a long body is sent over, with TLS.
    var uploadGate: TrustGate?
    /// libcurl reads no more, though it still sends.
    var hasAnswerEnded = false
    /// When the answer was whole and the body all handed over, but not all sent.
    var answeredAt: UInt64?
    var lastActivity: UInt64 = 0
    /// Where it stands in its origin's line, whether it does, and since when it has not been paused.
    var ticket: UInt64 = 0
    var isInLine = false
    var inLineSince: UInt64 = 0
    var priority = 0
    var tls: curlew_tls_facts?
    /// The server's own certificate, when the transfer is measured.
    var certificate: X509Certificate?
    /// Nil without an observer.
    var watch: Watch?
    var socketErrno: CInt = 0

    init(_ plan: borrowing TransferPlan) {
        headLimit = plan.headLimit
        if plan.bandwidth.isLimited { throttle = Throttle(plan.bandwidth) }
    }

    var isFresh: Bool { needsFreshConnection || opensConnection || findsNoneIdle }

    /// Since when the connect timeout counts: with the look-up, but anew for each attempt.
    var connectingSince: UInt64 { restarts > 0 ? launchedAt : admittedAt }

    /// Forgets the part of a head that came before the connection broke.
    mutating func forgetHead() {
        hasInformational = false
        finalHeadBeganAt = 0
        handle?.head.clear()
        check = HeadCheck()
        headBytes = 0
        tls = nil
        certificate = nil
    }

    /// Forgets an attempt of which nothing has reached the reader.
    mutating func beginAgain(at now: UInt64) {
        forgetHead()
        findsNoneIdle = false
        slab = nil
        chunks = []
        counters = Counters()
        bodyOffset = 0
        bodySentAt = 0
        socketErrno = 0
        abort = nil
        answeredAt = nil
        hasAnswerEnded = false
        uploadGate = nil
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
