// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The reason why a transfer ended without success, as the engine reports it.
package struct EngineFailure: Error {
    package enum Reason: Sendable {
        /// A libcurl result: its code, and the message that libcurl wrote or its text for the code.
        case curl(code: UInt32, text: String)
        case cancelled
        case closed
        /// A limit of the plan was exceeded; `after` is the limit in nanoseconds.
        case timedOut(TransferLimits.Kind, after: UInt64)
        /// No slot became free within the limit of the plan, in nanoseconds.
        ///
        /// `indirect` keeps `Reason` small: every transfer stores one.
        indirect case queueTimedOut(QueueReport, after: UInt64)
        indirect case cannotResolve(host: String, text: String)
        /// The connection died before a response arrived, and a retry might execute the request twice.
        case notRetried
        /// The HTTP/2 stream or its connection ended inside the response.
        case responseTruncated
        /// The server rejects the content coding of the body; the engine retries without it, so callers never see this
        /// reason.
        case refusedCoding
        /// The server rejects `Expect: 100-continue`; the engine retries without it, so callers never see this reason.
        case refusedExpectation
        /// The connection of a plan that only connects is open; the session reports success.
        case connectedOnly
        /// The server did not answer an HTTP/2 PING within a time in nanoseconds.
        case pingUnanswered(after: UInt64)
        /// A new HTTP/2 connection for a refused request now waits for the settings of the server; callers never see
        /// this reason.
        case connectedFirst
        /// The HTTP/2 server reported that it did not process the request.
        case streamRefused
        case bodyTooLarge(limit: Int)
        case headTooLarge(limit: Int)
        /// The connection ended inside the response head, which libcurl reports as success.
        case headTruncated
        /// libcurl accepts the head and RFC 9112 does not; the text is half a sentence that names the violation.
        case invalidHead(String)
        case invalidTrailers(String)
        /// The chunks of a body are malformed; the text is libcurl's.
        case invalidChunks(String)
        /// A line of the head is longer than libcurl accepts.
        case lineTooLong(limit: Int)
        /// A body delimited by the end of its TLS connection ended without close_notify, so it may be truncated.
        case endNotSignalled
        case untrusted(any Error)
        case untrustedProxy(any Error)
        /// An HTTP proxy did not open the tunnel: the status of its response to CONNECT, and the schemes that a 407
        /// offers, as far as libcurl knows them.
        case proxyRefused(status: Int, schemes: [String])
        /// A SOCKS proxy did not connect to the host.
        indirect case socksRefused(SOCKSFault, host: String)
        case bodySource(any Error)
        case bodyTooShort(sent: Int64, declared: Int64)
        case bodyTooLong(declared: Int64)
        case noRoots(places: [String])
        /// The connection ended inside the TLS handshake without an alert.
        case handshakeTruncated
        /// The certificate of the server was not evaluated, so no request is sent to it.
        case notEvaluated
        /// The server rejected the client certificate, or required one: its alert (RFC 8446 §6.2), and the names of the
        /// authorities it accepts.
        indirect case identityRefused(alert: Int32, hadIdentity: Bool, authorities: [String], isProxy: Bool)
        /// The TLS handshake with an https proxy failed, with libcurl's text.
        indirect case proxyHandshakeFailed(String)
        case noResources(errno: Int32)
        /// The rules of the configuration forbid the connection.
        indirect case socketRefused(SocketRules.Refusal)
        /// This machine has no free local address or port for the connection.
        case noAddress
    }

    /// The load of a host at the time when a transfer stopped waiting for a slot.
    package struct QueueReport: Sendable {
        package var host: String
        /// Transfers to the host that have a slot, and the number of slots.
        package var active: Int
        package var slots: Int
        /// Transfers to the host that wait for a slot, including the reporting one.
        package var waiting: Int
        /// Connections needed for all hosts, and their limit.
        package var connections: Int
        package var connectionLimit: Int
        /// The longest time in nanoseconds that a transfer has held its slot of the host, and the label of this
        /// transfer.
        package var oldestAge: UInt64
        package var oldestLabel: String?
    }

    /// The phase that the transfer had reached; its raw value is its position among the phases that users see.
    package enum Phase: Int, Sendable, CaseIterable {
        case preparing, queued, resolving, connecting, securing, sending, waiting, receiving
    }

    package var reason: Reason
    package var phase: Phase

    package init(_ reason: Reason, phase: Phase) {
        self.reason = reason
        self.phase = phase
    }

    /// Whether the caller requested the end, so that no retry follows.
    package var isRequested: Bool {
        switch reason {
        case .cancelled, .closed: true
        default: false
        }
    }

    /// Whether the run has opened the connection that its plan asked for, which is a success.
    package var isConnectedOnly: Bool { if case .connectedOnly = reason { true } else { false } }

    package var isCancellation: Bool { if case .cancelled = reason { true } else { false } }

    /// The same failure for a proxy in place of the server.
    package var ofProxy: EngineFailure {
        if case .untrusted(let cause) = reason { EngineFailure(.untrustedProxy(cause), phase: phase) } else { self }
    }
}
