// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

// Conversions between the engine's types and public types.

extension RawRepresentable where Self: CaseIterable {
    /// Creates the case with the raw value that a case of another type has.
    ///
    /// The engine cannot import this module, so it has enums of its own with the cases of some public enums.
    init<Other: RawRepresentable & CaseIterable>(sameAs other: Other) where Other.RawValue == RawValue {
        guard let same = Self(rawValue: other.rawValue) else {
            preconditionFailure("\(Self.self) has no case for \(other.rawValue)")
        }
        self = same
    }
}

extension NetworkError.Phase {
    init(_ phase: EngineFailure.Phase) { self = Self.allCases[phase.rawValue] }
}

extension Counters {
    var duration: Duration {
        startedAt == 0 || at <= startedAt ? .zero : .nanoseconds(Int64(clamping: at - startedAt))
    }
}

extension TransferProgress {
    /// Creates a progress from the engine's counters.
    ///
    /// - Parameter offset: The nanoseconds between the start of the transfer and that of the counters.
    init(_ counters: Counters, rate: Double, offset: UInt64 = 0) {
        self.init(
            sent: counters.sent, received: counters.received,
            expectedToSend: counters.expectedToSend < 0 ? nil : counters.expectedToSend,
            expectedToReceive: counters.expectedToReceive < 0 ? nil : counters.expectedToReceive,
            bytesPerSecond: rate, isFinished: counters.isFinished && !counters.hasFailed,
            elapsed: .nanoseconds(Int64(clamping: offset)) + counters.duration)
    }
}

extension TransferMetrics {
    init(_ raw: RawMetrics) {
        func span(_ from: Int64, _ to: Int64) -> Duration { .microseconds(Swift.max(0, to - from)) }
        let resolved = raw.resolved
        let connected = Swift.max(raw.resolved, raw.connected)
        let secured = Swift.max(connected, raw.secured)
        let ready = raw.isReused ? 0 : Swift.max(secured, raw.readyToSend)
        let sent = Swift.min(Swift.max(ready, raw.bodySent), Swift.max(ready, raw.total))
        let first = raw.firstByte > 0 ? Swift.max(raw.firstByte, sent) : sent
        self.init()
        queued = .nanoseconds(Int64(raw.queued))
        resolve = span(0, resolved)
        connect = span(resolved, connected)
        secure = span(connected, secured)
        send = span(ready, sent)
        wait = span(sent, first)
        receive = raw.firstByte > 0 ? span(first, raw.total) : .zero
        total = queued + .microseconds(raw.total)
        requestHeadBytes = raw.requestHeadBytes
        requestBodyBytes = raw.requestBodyBytes
        responseHeadBytes = raw.responseHeadBytes
        responseBodyBytes = raw.responseBodyBytes
        decodedBodyBytes = raw.responseBodyBytes
        version = ResponseHead.HTTPVersion(engineNumber: raw.version)
        withoutHTTP3 = raw.withoutHTTP3?.description
        localAddress = TransferMetrics.address(raw.localAddress, raw.localPort)
        remoteAddress = TransferMetrics.address(raw.remoteAddress, raw.remotePort)
        isConnectionReused = raw.isReused
        tlsVersion = raw.tlsVersion
        tlsCipher = raw.tlsCipher
        isTLSSessionResumed = raw.isResumed
        serverCertificate = raw.certificate.map { Certificate($0) }
        proxy = Proxy.Choice(raw.remark)
    }

    private static func address(_ host: String, _ port: Int) -> String {
        if host.isEmpty { return "" }
        // A Unix socket has a path and no port.
        return port == 0 ? host : authority(host, port)
    }
}

extension HTTP3Absence {
    fileprivate var description: String {
        switch self {
        case .notSupported: "libcurl \(CurlVersion.current.text) does not support HTTP/3"
        case .withoutTLS: "HTTP/3 requires https"
        case .routed: "the request uses a proxy or a Unix socket"
        case .ownConnection: "the request needs a connection of its own or HTTP/1.1"
        case .otherPort: "the resolver names another port"
        case .notAnnounced: "the server has not announced HTTP/3"
        case .otherWasFirst: "another connection was open or was opened sooner"
        }
    }
}

extension ResponseHead.HTTPVersion {
    /// Creates a version from a number of libcurl (CURL_HTTP_VERSION_*).
    fileprivate init(engineNumber: Int) {
        self =
            switch engineNumber {
            case 1: .http1_0
            case 3: .http2
            case 30: .http3
            default: .http1_1
            }
    }
}
