// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Why a transfer ended without success, in the engine's words.
package struct EngineFailure: Error {
    package enum Reason: Sendable {
        /// A libcurl result, its name's text and the detail libcurl wrote.
        case curl(code: UInt32, text: String)
        case cancelled
        case closed
        /// A limit of the plan has passed, and how long it is in nanoseconds.
        case timedOut(Limit, after: UInt64)
        /// No place on the wire within the plan's limit.
        /// Apart, since every transfer has room for a failure.
        indirect case queueTimedOut(QueueReport, after: UInt64)
        indirect case cannotResolve(host: String, text: String)
        /// The connection died before an answer, and repeating might do it twice.
        case notRepeated
        /// HTTP/2: the stream or its connection ended inside the answer.
        case answerCut
        /// The server does not take the body's coding; the request is sent again without, so nobody sees this.
        case refusedCoding
        /// The server does not want to be asked whether it takes the body; likewise.
        case refusedExpectation
        /// HTTP/2: there is a connection for a request that was refused, which waits for the server's settings; nobody sees
        /// this.
        case connectedFirst
        /// HTTP/2: the server said that it did nothing with the request.
        case streamRefused
        case bodyTooLarge(limit: Int)
        case headTooLarge(limit: Int)
        /// The connection ended inside the response head, which libcurl reports as success.
        case headTruncated
        /// A head that libcurl takes and RFC 9112 does not, and why, as half a sentence.
        case invalidHead(String)
        case invalidTrailers(String)
        /// The chunks of a body are malformed, in libcurl's words.
        case invalidChunks(String)
        /// A line of a head is longer than libcurl takes.
        case lineTooLong(limit: Int)
        /// A body that ends with its TLS connection ended without close_notify, so it may have been cut.
        case endNotAnnounced
        case untrusted(any Error)
        case bodySource(any Error)
        case bodyTooShort(sent: Int64, declared: Int64)
        case bodyTooLong(declared: Int64)
        case noRoots(places: [String])
        /// The connection ended inside the TLS handshake, and nothing was said of why.
        case handshakeCut
        /// The server was not judged, so that nothing is sent to it.
        case notJudged
        /// The server refused us for the certificate we showed, or for showing none: its alert (RFC 8446 §6.2), and whose
        /// it takes.
        indirect case identityRefused(alert: Int32, hadIdentity: Bool, authorities: [String])
        case noResources(errno: Int32)
        /// This machine has no local address or port left for the connection.
        case noAddress
    }

    package enum Limit: Sendable {
        case connect, head, idle, total
        /// So many bytes were to move, at least.
        case slow(bytes: Int64)
    }

    /// Why a transfer had to wait for a place.
    package struct QueueReport: Sendable {
        package var host: String
        /// Transfers to the host that have a place, and how many may.
        package var active: Int
        package var places: Int
        /// Transfers to the host that wait, this one included.
        package var waiting: Int
        /// Connections that all hosts need, and how many there may be.
        package var connections: Int
        package var connectionLimit: Int
        /// The transfer to the host that has had its place longest: for how many nanoseconds, and its label.
        package var oldestAge: UInt64
        package var oldestLabel: String?
    }

    /// How far the transfer had come.
    package enum Phase: Sendable {
        case preparing, queued, resolving, connecting, securing, sending, waiting, receiving
    }

    package var reason: Reason
    package var phase: Phase

    package init(_ reason: Reason, phase: Phase) {
        self.reason = reason
        self.phase = phase
    }

    /// Whether somebody wanted the end, so that nothing follows.
    package var isOrdered: Bool {
        switch reason {
        case .cancelled, .closed: true
        default: false
        }
    }

    package var isCancellation: Bool { if case .cancelled = reason { true } else { false } }
}
