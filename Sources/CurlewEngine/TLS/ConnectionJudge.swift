// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

/// The judge of one connection, called by OpenSSL during its handshake and freed with its SSL_CTX.
final class ConnectionJudge {
    private let domain: TrustDomain
    private let host: String
    private let port: UInt16
    /// Whether the server is a proxy.
    let isProxy: Bool
    private let keyLog: KeyLog?
    /// The time until which new TLS sessions of the connection may be stored; a resumed session expires then too.
    private let sessionsEnd: UInt64
    private let clock: LoopClock
    /// The certificates that wait for the OCSP response, which TLS 1.2 sends after the certificates.
    private var pending: [X509Certificate]?
    private(set) var isAccepted = false
    /// The reason why the server was refused.
    private(set) var refusal: (any Error)?
    /// The last fatal alert (RFC 8446 §6.2).
    private(set) var alert: CInt?
    /// Whether the server sent close_notify (RFC 8446 §6.1), which proves that no attacker truncated the data.
    private(set) var isEndSignalled = false
    /// Whether the connection closed during the handshake, which is no TLS error.
    private(set) var isCut = false
    /// The authorities that the server accepts in client certificates; empty for any authority, nil without a request.
    private(set) var acceptedAuthorities: [String]?
    private var certificate: X509Certificate?

    init(
        domain: TrustDomain, host: String, port: UInt16, isProxy: Bool = false, keyLog: KeyLog?, sessionsEnd: UInt64,
        clock: LoopClock
    ) {
        self.domain = domain
        self.host = host
        self.port = port
        self.isProxy = isProxy
        self.keyLog = keyLog
        self.sessionsEnd = sessionsEnd
        self.clock = clock
    }

    /// Installs this object as the only judge of the connections of an SSL_CTX.
    ///
    /// - Returns: False when the domain is not ready, or OpenSSL reports an error.
    func install(in context: UnsafeMutableRawPointer, _ tls: EngineConfiguration.TLS) -> Bool {
        guard domain.isReady else { return false }
        let owned = Unmanaged.passRetained(self).toOpaque()
        return tls.withOptions(host: host, wantsOCSPResponse: domain.wantsOCSPResponse, logsKeys: keyLog != nil) {
            curlew_tls_install(context, owned, &judgeCallbacks, &$0)
        }
    }

    /// Returns the judge of the connection of a running transfer; another transfer may have opened the connection.
    ///
    /// The result is nil outside libcurl's callbacks.
    static func ofConnection(under handle: EasyHandle) -> ConnectionJudge? {
        curlew_tls_judge(handle.curl).map { Unmanaged<ConnectionJudge>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Accepts a resumed connection if necessary, and returns whether a request may be sent over the connection.
    ///
    /// The server must have been accepted in this handshake or in the handshake of the resumed TLS session.
    func acceptRequest(on handle: EasyHandle) -> Bool {
        if !isAccepted, refusal == nil, pending == nil {
            var facts = curlew_tls_facts()
            isAccepted = curlew_tls_read(handle.curl, &facts) && facts.resumed
        }
        return isAccepted
    }

    /// Returns the server's own certificate, also for a resumed session; nil outside libcurl's callbacks.
    func certificate(under handle: EasyHandle) -> X509Certificate? {
        if certificate == nil { certificate = X509Certificate(curlew_tls_certificate(handle.curl)) }
        return certificate
    }

    /// Whether the server rejected the client certificate or its absence.
    var isIdentityRefused: Bool {
        guard acceptedAuthorities != nil, let alert else { return false }
        return ConnectionJudge.identityAlerts.contains(alert)
    }

    var hasIdentity: Bool { domain.identity != nil }

    private static let identityAlerts: Set<CInt> = [
        SSL_AD_HANDSHAKE_FAILURE, 41, SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE,
        SSL_AD_CERTIFICATE_REVOKED, SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
        SSL_AD_ACCESS_DENIED, SSL_AD_CERTIFICATE_REQUIRED,
    ]

    fileprivate func judge(chain store: OpaquePointer) -> Bool {
        let served = (0..<curlew_sent_count(store)).compactMap { X509Certificate(curlew_sent_certificate(store, $0)) }
        if domain.wantsOCSPResponse {
            pending = served
        } else {
            judge(served, ocspResponse: nil)
        }
        // Overwrite OpenSSL's own result: libcurl would refuse a server that the judge accepts.
        X509_STORE_CTX_set_error(store, refusal == nil ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION)
        return refusal == nil
    }

    /// Returns whether the server is accepted, after judging pending certificates.
    ///
    /// A resumed session has no pending certificates: its server was judged in the first handshake.
    fileprivate func judge(ocspResponse: [UInt8]?) -> Bool {
        guard let served = pending else { return refusal == nil }
        pending = nil
        judge(served, ocspResponse: ocspResponse)
        return refusal == nil
    }

    private func judge(_ served: [X509Certificate], ocspResponse: [UInt8]?) {
        refusal = domain.judge(
            PeerFacts(host: host, port: port, isProxy: isProxy, served: served, ocspResponse: ocspResponse))
        isAccepted = refusal == nil
    }

    fileprivate func setIdentity(in connection: OpaquePointer) -> Bool {
        var authorities: [String] = []
        while authorities.count < 32, let name = curlew_accepted_authority(connection, CInt(authorities.count)) {
            authorities.append(string(name))
        }
        acceptedAuthorities = authorities
        // Without an identity the handshake continues: the certificate may be optional for the server.
        return domain.identity?.use(in: connection) ?? true
    }

    fileprivate func note(alert: CInt) {
        if alert == SSL_AD_CLOSE_NOTIFY { isEndSignalled = true } else { self.alert = alert }
    }

    fileprivate func noteFailure(isCut: Bool) { self.isCut = isCut }

    /// Whether new TLS sessions may be stored; a late ticket would extend an old judgement to further connections.
    ///
    /// A session with a proxy is never stored: a server with the same name and port could resume it without a judge.
    fileprivate var keepsSessions: Bool { !isProxy && clock.now() < sessionsEnd }

    fileprivate func note(key line: UnsafePointer<CChar>) { keyLog?.append(String(cString: line)) }
}

extension String {
    /// The host without a trailing dot, the form of keys in host tables.
    package var withoutTrailingDot: String { hasSuffix(".") ? String(dropLast()) : self }
}

private func judge(_ pointer: UnsafeMutableRawPointer?) -> ConnectionJudge? {
    pointer.map { Unmanaged<ConnectionJudge>.fromOpaque($0).takeUnretainedValue() }
}

/// The callbacks for OpenSSL, which run on the loop thread like all of libcurl's code.
private nonisolated(unsafe) var judgeCallbacks = curlew_judge_callbacks(
    // Safe because it never changes: it is a variable only so that C can take its address.
    verify: { store, pointer in
        guard let store, let judge = judge(pointer) else { return 0 }
        return judge.judge(chain: store) ? 1 : 0
    },
    ocspResponse: { _, response, count, pointer in
        let ocspResponse = response.map { Array(UnsafeBufferPointer(start: $0, count: count)) }
        return judge(pointer)?.judge(ocspResponse: ocspResponse) == true ? 1 : 0
    },
    identity: { connection, pointer in
        guard let connection else { return 0 }
        return judge(pointer)?.setIdentity(in: connection) == true ? 1 : 0
    },
    alert: { alert, pointer in judge(pointer)?.note(alert: alert) },
    failed: { isCut, pointer in judge(pointer)?.noteFailure(isCut: isCut) },
    keeps: { pointer in judge(pointer)?.keepsSessions == true ? 1 : 0 },
    key: { line, pointer in if let line { judge(pointer)?.note(key: line) } },
    release: { pointer in if let pointer { Unmanaged<ConnectionJudge>.fromOpaque(pointer).release() } })
