// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Conversions of failures of the engine and of request bodies to the public error.
extension NetworkError {
    /// Creates the public error for a failure of the engine.
    ///
    /// - Parameters:
    ///   - failure: The failure that the engine reported.
    ///   - request: The request that failed.
    ///   - response: The response head; nil when the failure occurred before the head arrived.
    ///   - body: The first bytes of the response body, as far as they arrived.
    ///   - duration: The time since the transfer started.
    ///   - proxy: The proxy of the request and the reason for it; nil when no rule applies to the request.
    init(
        _ failure: EngineFailure, request: Request, response: ResponseHead? = nil, body: [UInt8] = [],
        duration: Duration? = nil, proxy: Proxy.Choice? = nil
    ) {
        var meaning = Meaning(failure, of: request, by: proxy)
        if let proxy, proxy.proxy != nil, failure.phase.rawValue < EngineFailure.Phase.sending.rawValue,
            failure.phase.rawValue > EngineFailure.Phase.queued.rawValue, !meaning.namesProxy
        {
            meaning.hint = (meaning.hint.map { $0 + " " } ?? "") + "The request goes through the proxy \(proxy)."
        }
        self.init(
            meaning.kind, phase: Phase(failure.phase), meaning.message,
            hint: meaning.kind == .bodyNotReplayable ? meaning.hint(naming: request.body) : meaning.hint,
            cause: meaning.cause, request: request, response: response, body: body, duration: duration,
            engineCode: meaning.code, requestFlaw: meaning.kind == .invalidRequest ? .url : nil)
    }

    /// Creates the error for a body that was not written to a file.
    init(_ failure: BodySpool.Failure) {
        switch failure {
        case .destination(let failure):
            self.init(
                invalid: .destination, "The body cannot be spooled: \(failure).",
                hint: "Name a file that does not exist yet, in an existing folder.", cause: failure)
        case .writing(let failure):
            self.init(
                .bodyFailed, phase: .preparing, "The body could not be spooled: \(failure).",
                hint: "Check the free space on the disk.", cause: failure)
        case .body(let reason):
            let meaning = Meaning(EngineFailure(reason, phase: .preparing))
            self.init(meaning.kind, phase: .preparing, meaning.message, hint: meaning.hint, cause: meaning.cause)
        case .cancelled:
            self.init(.cancelled, phase: .preparing, "The task was cancelled; no file was written.")
        }
    }

    /// Creates the error for a body whose next chunk could not be read before the body is sent.
    init(_ failure: BodyTap.Failure) {
        switch failure {
        case .body(let reason):
            let meaning = Meaning(EngineFailure(reason, phase: .preparing))
            self.init(meaning.kind, phase: .preparing, meaning.message, hint: meaning.hint, cause: meaning.cause)
        case .cancelled: self.init(.cancelled, phase: .preparing, "The task was cancelled.")
        }
    }

    /// The parts of the public error that depend on the failure alone.
    private struct Meaning {
        var kind: Kind
        var message: String
        var hint: String?
        var cause: (any Error)?
        var code: Int32?
        /// Whether the message has the proxy and the reason for it.
        var namesProxy = false

        init(_ kind: Kind, _ message: String, hint: String? = nil, cause: (any Error)? = nil, code: Int32? = nil) {
            self.kind = kind
            self.message = message
            self.hint = hint
            self.cause = cause
            self.code = code
        }

        /// Returns the hint, followed by the name of the part that prevents the body from being sent again.
        func hint(naming body: RequestBody) -> String? {
            guard let part = body.nonReplayablePart else { return hint }
            return (hint.map { $0 + " " } ?? "") + "Replace \(part), which can be read only once."
        }

        /// Creates the meaning of a proxy's refusal.
        private init(_ error: NetworkError) {
            self.init(error.kind, error.message, hint: error.hint)
            namesProxy = true
        }

        init(_ failure: EngineFailure, of request: Request? = nil, by proxy: Proxy.Choice? = nil) {
            switch failure.reason {
            case .proxyRefused(let status, let schemes):
                let target = request.flatMap { try? $0.target() }
                self = Meaning(
                    NetworkError(
                        proxyRefusal: status, of: proxy, to: target.map { authority($0.host, $0.port) },
                        offering: schemes.map { .init($0) }, phase: .connecting))
                code = 56
            case .socksRefused(let fault, let host):
                self = .socksRefused(fault, host, proxy)
                namesProxy = fault != .noAddress
            case .untrustedProxy(let cause):
                self = Meaning(
                    .untrusted, "The proxy \(proxy.map { "\($0) " } ?? "")is not trusted: \(cause).",
                    hint: "Set the trust of the proxy; the session's evaluator judges only servers.", cause: cause)
            case .curl(let code, let text): self = Meaning(code: code, text: text, phase: failure.phase)
            case .cancelled: self = Meaning(.cancelled, "The transfer was cancelled.")
            case .closed:
                self = Meaning(
                    .sessionClosed, "The session is closed.",
                    hint: "The session was shut down, or this process was forked; create a new Session.")
            case .timedOut(let limit, let after): self = .timedOut(limit, after: after, of: request)
            case .queueTimedOut(let report, let after): self = .queueTimedOut(report, after: after, of: request)
            case .cannotResolve(let host, let text):
                self = Meaning(
                    .cannotResolve, "The host “\(host)” cannot be resolved: \(text).",
                    hint: "Check the host name and the name servers.", code: 6)
            case .notRetried:
                self = Meaning(
                    .connectionLost, "The reused connection ended before a response arrived.",
                    hint:
                        "The server may have acted on the request, so it was not retried. Retry it if that is harmless."
                )
            case .pingUnanswered(let after):
                self = Meaning(
                    .connectionLost,
                    "The server sent nothing for \(Duration.nanoseconds(Int64(clamping: after)).brief) after an HTTP/2 PING.",
                    hint: "The server or the network in between is dead, or http.ping.limit is too short.")
            case .responseTruncated:
                self = Meaning(.connectionLost, "The HTTP/2 stream ended before the response was complete.", code: 92)
            case .refusedExpectation, .refusedCoding:
                self = Meaning(
                    .bodyNotReplayable,
                    "The server requires the request in another form, and the request body can be read only once.",
                    hint: "Use a body that can be replayed, or set expectContinue to never.")
            case .streamRefused:
                self = Meaning(
                    .streamRefused, "The server refused the HTTP/2 stream and did not process the request.",
                    hint: "The server is busy or shutting down; retry, perhaps later.", code: 92)
            case .bodyTooLarge(let limit):
                self = Meaning(
                    .bodyTooLarge, "The response body has more than \(ByteCount(Int64(limit))).",
                    hint: "Raise options.responseLimit or limits.responseBody, or read transfer.bytes.")
            case .headTooLarge(let limit):
                self = Meaning(
                    .invalidResponse, "The response head has more than \(ByteCount(Int64(limit))).",
                    hint: "Raise limits.responseHead if a head of this size is legitimate.")
            case .handshakeTruncated:
                self = Meaning(
                    .connectionLost, "The connection ended inside the TLS handshake.",
                    hint: "The server closed the connection early, or this port does not speak TLS.", code: 35)
            case .headTruncated:
                self = Meaning(.connectionLost, "The connection ended inside the response head.")
            case .invalidHead, .invalidTrailers, .invalidChunks, .lineTooLong, .endNotSignalled:
                self = .malformed(failure.reason)
            case .untrusted(let cause):
                self = Meaning(
                    .untrusted, "The server is not trusted: \(cause).",
                    hint: (cause as? any DetailedCause)?.hint
                        ?? "Check the URL's host, the server's chain and the roots you trust.", cause: cause)
            case .notEvaluated:
                self = Meaning(.untrusted, "The certificate of the server was not evaluated, so nothing was sent.")
            case .identityRefused(let alert, let hadIdentity, let authorities, let isProxy):
                self = .identityRefused(alert, hadIdentity, authorities, isProxy: isProxy)
            case .proxyHandshakeFailed(let text):
                self = Meaning(
                    .tlsFailed, "The TLS handshake with the proxy failed: \(text).",
                    hint: "Check whether the proxy speaks TLS at this port; most proxies need http:// in their URL.",
                    code: 35)
            default: self = Meaning(localOf: failure.reason)
            }
        }

        /// Returns the meaning of a SOCKS proxy's reply.
        private static func socksRefused(_ fault: SOCKSFault, _ host: String, _ proxy: Proxy.Choice?) -> Meaning {
            let name = proxy.map { "The proxy \($0)" } ?? "The proxy"
            func notConnected(
                _ kind: Kind, _ text: String, hint: String = "Check the host, the port and the rules of the proxy."
            ) -> Meaning {
                Meaning(kind, "\(name) did not connect to \(host): \(text).", hint: hint, code: 97)
            }
            return switch fault {
            case .credentials:
                Meaning(
                    .proxyAuthenticationRequired, "\(name) requires credentials, or does not accept them.",
                    hint: "Set the right name and password: Proxy(url, .basic(name, password)).", code: 97)
            case .noAddress:
                Meaning(
                    .cannotResolve, "The host “\(host)” has no address that the proxy can use.",
                    hint: "Use socks4a or socks5h, so that the proxy looks up the name.", code: 97)
            case .refused(let text): notConnected(.proxyRefused, text)
            case .unreachable(let text): notConnected(.cannotConnect, text)
            case .broken:
                notConnected(
                    .connectionLost, "it speaks another protocol or disconnected",
                    hint: "Check the scheme and the port of the proxy.")
            }
        }

        /// Returns the meaning of a response that is ambiguous or may be truncated.
        private static func malformed(_ reason: EngineFailure.Reason) -> Meaning {
            let hint = "The server or an intermediary violates HTTP, so the response is ambiguous."
            return switch reason {
            case .invalidHead(let why):
                Meaning(.invalidResponse, "The response head is malformed: \(why).", hint: hint)
            case .invalidTrailers(let why):
                Meaning(.invalidResponse, "The trailer section is malformed: \(why).", hint: hint)
            case .invalidChunks(let text):
                Meaning(.invalidResponse, "The body's chunks are malformed: \(text).", hint: hint)
            case .lineTooLong(let limit):
                Meaning(
                    .invalidResponse, "A line of the response head has more than \(ByteCount(Int64(limit))).",
                    hint: "libcurl does not accept longer lines.")
            default:
                Meaning(
                    .connectionLost, "The body ends with the connection, and the server did not announce that end.",
                    hint: "Without close_notify it may be truncated (RFC 8446 §6.1); the server should send a length.")
            }
        }

        /// Creates the meaning of a failure on this machine.
        private init(localOf reason: EngineFailure.Reason) {
            switch reason {
            case .bodySource(let failure as SourceFailure) where failure.cause != nil:
                self = Meaning(.bodyFailed, "The request body could not be read: \(failure).", cause: failure.cause)
            case .bodySource(let cause):
                self = Meaning(.bodyFailed, "The request body could not be read: \(cause).", cause: cause)
            case .bodyTooShort(let sent, let declared):
                self = Meaning(
                    .bodyFailed, "The request body ended after \(sent) of the \(declared) bytes declared.",
                    hint: "Declare the real length of the source, or leave it out.")
            case .bodyTooLong(let declared):
                self = Meaning(
                    .bodyFailed, "The request body has more than the \(declared) bytes declared.",
                    hint: "Declare the real length of the source, or leave it out.")
            case .noResources(let errno):
                self = Meaning(
                    .resourceExhausted, "The system has run out of resources: \(errorText(errno)).",
                    hint: "Check the limits of open files (ulimit -n), threads and memory.")
            case .socketRefused(let refusal): self = .socketRefused(refusal)
            case .noAddress:
                self = Meaning(
                    .cannotConnect, "This machine has no local address or port left for the connection.",
                    hint: "Short connections have used up the ports (net.ipv4.ip_local_port_range), or the address "
                        + "family is disabled.", code: 7)
            default: self = Meaning(.internal, "An unexpected failure occurred: \(reason).")
            }
        }

        /// Returns the meaning of a rule of `tcp` that forbids a connection.
        private static func socketRefused(_ refusal: SocketRules.Refusal) -> Meaning {
            switch refusal {
            case .forbidden(let interface):
                Meaning(
                    .cannotConnect,
                    "The route to the host uses the forbidden interface \(interface.escapingControls).",
                    hint: "Use a network on another interface, or change tcp.forbiddenInterfaces.")
            case .unusable(let name, let errno):
                Meaning(
                    .cannotConnect, "Connections cannot use \(name.escapingControls): \(errorText(errno)).",
                    hint: "Check tcp.interface and tcp.localAddress against the output of “ip address”.")
            case .otherFamily(let local):
                Meaning(
                    .cannotConnect, "The host has no address of the same family as \(local.escapingControls).",
                    hint: "Set tcp.localAddress to an address of the other family, or remove it.")
            }
        }

        /// Returns the meaning of a TLS alert about the client certificate (RFC 8446 §6.2).
        private static func identityRefused(
            _ alert: Int32, _ hadIdentity: Bool, _ authorities: [String], isProxy: Bool
        ) -> Meaning {
            let peer = isProxy ? "proxy" : "server"
            let reasons: [Int32: String] = [
                42: "it is malformed", 43: "its type is not supported", 44: "it was revoked", 45: "it has expired",
                46: "it is not acceptable", 48: "the server does not know its authority", 49: "access is denied",
            ]
            let wanted =
                authorities.isEmpty
                ? "" : " Accepted issuers: \(authorities.prefix(5).joined(separator: "; ").escapingControls)."
            guard hadIdentity else {
                return Meaning(
                    .tlsFailed, "The \(peer) requires a client certificate, but no identity was given.",
                    hint: isProxy
                        ? "Set Proxy.identity.\(wanted)" : "Give the session a ClientIdentity for this host.\(wanted)",
                    code: 35)
            }
            return Meaning(
                .tlsFailed,
                "The \(peer) refused the client certificate: \(reasons[alert] ?? "TLS alert \(alert)").",
                hint: "Check its validity and its issuer.\(wanted)", code: 35)
        }

        private static func timedOut(
            _ limit: TransferLimits.Kind, after nanoseconds: UInt64, of request: Request?
        ) -> Meaning {
            let (message, hint) = limit.explanation(.nanoseconds(Int64(clamping: nanoseconds)), of: request)
            return Meaning(.timedOut, message, hint: hint)
        }

        private static func queueTimedOut(
            _ report: EngineFailure.QueueReport, after nanoseconds: UInt64, of request: Request?
        ) -> Meaning {
            let limit = NetworkError.limit(.queue, .nanoseconds(Int64(clamping: nanoseconds)), of: request)
            var reasons = ["\(report.active) of \(report.slots) slots at \(report.host) are taken"]
            if report.active < report.slots {
                reasons.append("\(report.connections) of \(report.connectionLimit) connections are in use")
            }
            reasons.append("\(report.waiting) transfers wait for a slot")
            if report.active > 0 {
                let label = report.oldestLabel.map { " (“\($0.escapingControls)”)" } ?? ""
                let age = Duration.nanoseconds(Int64(clamping: report.oldestAge)).brief
                reasons.append("the oldest transfer\(label) has run for \(age)")
            }
            return Meaning(
                .timedOut, "The transfer waited longer than \(limit): \(reasons.joined(separator: ", ")).",
                hint: "Start fewer transfers at once, or raise limits.connectionsPerHost or limits.connections.")
        }

        private init(code: UInt32, text: String, phase: EngineFailure.Phase) {
            let (kind, hint): (Kind, String?) =
                switch CurlFault(code: code, text: text) {
                // After the request was sent, this code means a response without a status line (HTTP/0.9).
                case .unsupportedProtocol where [.sending, .waiting, .receiving].contains(phase):
                    (.invalidResponse, "Check that an HTTP server listens at this port.")
                case .unsupportedProtocol: (.unsupported, "Curlew supports http and https.")
                case .malformedURL: (.invalidRequest, nil)
                case .socksFailed: (.proxyRefused, "Check the proxy's scheme.")
                case .cannotResolveProxy: (.cannotResolve, "Check the proxy's host name.")
                case .cannotResolveHost: (.cannotResolve, "Check the host name and the name servers.")
                case .cannotConnect: (.cannotConnect, "Check that the server listens and that no firewall blocks it.")
                case .malformedResponse, .badArgument, .badContentCoding, .malformedChunks, .headTooLarge:
                    (.invalidResponse, nil)
                case .connectionFailed:
                    (.connectionLost, "The server is shutting down the connection, or it violated HTTP/2.")
                case .protocolViolation: (.invalidResponse, "One side violated HTTP/2, or was flooded with frames.")
                case .streamReset, .streamClosed, .streamClosedInsideHead, .streamRefused:
                    (.connectionLost, "The server reset the HTTP/2 stream.")
                case .truncated where phase == .receiving:
                    (.connectionLost, "The body is shorter than its announced length.")
                case .truncated, .emptyReply:
                    (.connectionLost, "The server closed the connection without a response.")
                case .outOfMemory: (.resourceExhausted, nil)
                case .timedOut: (.timedOut, nil)
                case .plainText where phase == .securing:
                    (.tlsFailed, "Use http:// instead of https://, or the port where the server speaks TLS.")
                case .handshakeFailed, .plainText: (phase == .securing ? .tlsFailed : .connectionLost, nil)
                case .sendFailed, .receiveFailed, .retriesExhausted: (.connectionLost, nil)
                case .tlsFailed: (.tlsFailed, nil)
                case .untrusted: (.untrusted, nil)
                case .cannotRewind:
                    (
                        .bodyNotReplayable,
                        "The connection was stale, or the server requires the body again; use a replayable body."
                    )
                case .tooLarge, .other: (.internal, nil)
                }
            let isPlainText = kind == .tlsFailed && CurlFault(code: code, text: text) == .plainText
            let text =
                isPlainText ? "The server speaks plain HTTP, or another protocol without TLS, at this port." : text
            self.init(kind, text.hasSuffix(".") ? text : text + ".", hint: hint, code: Int32(bitPattern: code))
        }
    }
}

extension NetworkError {
    /// Creates the error of a file of cookies or HSTS hosts that cannot be read or written.
    ///
    /// - Parameter kind: Such as "cookie file".
    init(unusable kind: String, _ path: String, _ failure: DiskFailure) {
        self.init(
            .destinationFailed, phase: .saving, "The \(kind) \(path) cannot be used: \(failure).",
            hint: "Check the directory, the owner and the permissions of the file, and the free space on the disk.",
            cause: DownloadDestination.Failure(failure))
    }
}
