// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// A server's identity and TLS options in OpenSSL's form, shared by its connections.
// Safe because OpenSSL allows SSL_new on one SSL_CTX from many threads, and after `init` only SSL_new uses the context.
final class TLSContext: @unchecked Sendable {
    private let context: OpaquePointer
    /// The protocol that the server selects by ALPN.
    private let applicationProtocol: [UInt8]
    /// The faults that happen once a whole ClientHello has arrived.
    private let helloFaults: [SocketFault]
    private let asksForCertificate: Bool

    /// The OCSP response to staple, in OpenSSL's form.
    private let ocspResponse: UnsafeMutablePointer<ASN1_OCTET_STRING>?

    init(
        _ identity: TestIdentity, _ options: MockServer.TLSOptions, applicationProtocol: String = "http/1.1"
    ) throws {
        guard let context = SSL_CTX_new(TLS_server_method()) else { throw TestingError.openSSL("Starting TLS") }
        self.context = context
        self.applicationProtocol = Array(applicationProtocol.utf8)
        helloFaults = options.onClientHello
        asksForCertificate = options.clientAuthority != nil
        ocspResponse = options.ocspResponse.flatMap { bytes in
            let ocspResponse = ASN1_OCTET_STRING_new()
            ASN1_OCTET_STRING_set(ocspResponse, bytes, CInt(bytes.count))
            return ocspResponse
        }
        try limitVersions(options)
        try limitCiphers(options)
        // OpenSSL must not add deliberately omitted certificates from the store of client authorities to the chain.
        SSL_CTX_ctrl(context, SSL_CTRL_MODE, Int(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN), nil)
        try install(identity)
        SSL_CTX_set_session_id_context(context, "mock", 4)
        if !options.allowsResumption { forbidResumption() }
        configureALPN()
        if let authority = options.clientAuthority { try askForCertificate(by: authority, options) }
        if let ocspResponse { curlew_set_ocsp_response(context, ocspResponse) }
        if !helloFaults.isEmpty { interruptHandshakes() }
    }

    private func forbidResumption() {
        SSL_CTX_set_options(context, noTickets)
        SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
        SSL_CTX_set_num_tickets(context, 0)
    }

    private func configureALPN() {
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, chosen, count, offered, offeredCount, server in
                guard let server else { return SSL_TLSEXT_ERR_NOACK }
                // The context outlives every connection, because each connection holds the server's core.
                let context = Unmanaged<TLSContext>.fromOpaque(server).takeUnretainedValue()
                return context.choose(chosen, count, offered, offeredCount)
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Makes OpenSSL interrupt each handshake once, when a whole ClientHello has arrived.
    private func interruptHandshakes() {
        SSL_CTX_set_client_hello_cb(
            context,
            { connection, _, _ in
                if SSL_get_ex_data(connection, 0) != nil { return SSL_CLIENT_HELLO_SUCCESS }
                SSL_set_ex_data(connection, 0, UnsafeMutableRawPointer(connection))
                return SSL_CLIENT_HELLO_RETRY
            }, nil)
    }

    deinit {
        SSL_CTX_free(context)
        ASN1_OCTET_STRING_free(ocspResponse)
    }

    /// Performs the handshake; throws a `HandshakeFailure` if either side rejects it or the client disconnects.
    func accept(_ waiter: SocketWaiter) throws -> TLSStream {
        guard let connection = SSL_new(context) else { throw Disconnect.ended }
        let stream = TLSStream(connection, waiter: waiter)
        SSL_set_fd(connection, waiter.socket)
        while true {
            ERR_clear_error()
            errno = 0
            let code = SSL_accept(connection)
            if code == 1 { return stream }
            if SSL_get_error(connection, code) == SSL_ERROR_WANT_CLIENT_HELLO_CB {
                // Bypass TLS, which has sent nothing yet.
                let plain = PlainStream(waiter: waiter)
                for fault in helloFaults { try fault.perform(on: plain) }
                continue
            }
            let number = errno
            guard try stream.waitToRetry(after: code) else {
                throw HandshakeFailure(latestOn: connection, errno: number, mayHaveUnreadBytes: asksForCertificate)
            }
        }
    }

    private func limitVersions(_ options: MockServer.TLSOptions) throws {
        let lowest = Self.number(options.minimumVersion)
        let highest = Self.number(options.maximumVersion)
        if let level = options.securityLevel {
            SSL_CTX_set_security_level(context, CInt(clamping: level))
        } else if lowest < Self.number(.v1_2) {
            // Debian's default level rejects the signatures that TLS 1.0 and 1.1 require.
            SSL_CTX_set_security_level(context, 0)
        }
        guard SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, lowest, nil) == 1,
            SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, highest, nil) == 1
        else { throw TestingError.openSSL("Limiting the TLS versions") }
    }

    private func limitCiphers(_ options: MockServer.TLSOptions) throws {
        if let list = options.ciphers, SSL_CTX_set_cipher_list(context, list) != 1 {
            throw TestingError.openSSL("Choosing the ciphers \(list)")
        }
        if let suites = options.cipherSuites, SSL_CTX_set_ciphersuites(context, suites) != 1 {
            throw TestingError.openSSL("Choosing the cipher suites \(suites)")
        }
    }

    private func install(_ identity: TestIdentity) throws {
        let key = try readKey(identity.privateKeyPEM)
        defer { EVP_PKEY_free(key) }
        let leaf = try readCertificate(identity.certificatePEM)
        defer { X509_free(leaf) }
        guard SSL_CTX_use_certificate(context, leaf) == 1, SSL_CTX_use_PrivateKey(context, key) == 1 else {
            throw TestingError.openSSL("Installing an identity")
        }
        for one in identity.intermediates {
            let certificate = try readCertificate(one.pem)
            defer { X509_free(certificate) }
            // The context adds its own reference.
            guard SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate)) == 1 else {
                throw TestingError.openSSL("Installing an intermediate certificate")
            }
        }
    }

    private func askForCertificate(by authority: TestAuthority, _ options: MockServer.TLSOptions) throws {
        let certificate = try readCertificate(authority.certificatePEM)
        defer { X509_free(certificate) }
        let store = SSL_CTX_get_cert_store(context)
        X509_STORE_add_cert(store, certificate)
        SSL_CTX_add_client_CA(context, certificate)
        // Trust the authority even if it is not a root.
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        for one in options.clientRevocationLists {
            let list = try readRevocationList(one.pem)
            defer { X509_CRL_free(list) }
            X509_STORE_add_crl(store, list)
            X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
        }
        let necessity = options.requiresClientCertificate ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | necessity, nil)
    }

    private static func number(_ version: MockServer.TLSOptions.Version) -> Int {
        switch version {
        case .v1_0: Int(TLS1_VERSION)
        case .v1_1: Int(TLS1_1_VERSION)
        case .v1_2: Int(TLS1_2_VERSION)
        case .v1_3: Int(TLS1_3_VERSION)
        }
    }

    private func choose(
        _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
        _ count: UnsafeMutablePointer<UInt8>?,
        _ offered: UnsafePointer<UInt8>?,
        _ offeredCount: UInt32
    ) -> CInt {
        var position = 0
        while let offered, position < Int(offeredCount) {
            let length = Int(offered[position])
            let name = UnsafeBufferPointer(start: offered + position + 1, count: length)
            if position + 1 + length <= Int(offeredCount), name.elementsEqual(applicationProtocol) {
                chosen?.pointee = offered + position + 1
                count?.pointee = UInt8(length)
                return SSL_TLSEXT_ERR_OK
            }
            position += 1 + length
        }
        return SSL_TLSEXT_ERR_NOACK
    }
}

/// SSL_OP_NO_TICKET, a macro that Swift does not import.
private let noTickets: UInt64 = 1 << 14

/// The reason for a failed handshake, in OpenSSL's words.
struct HandshakeFailure: Error {
    let reason: String
    /// Whether the client may already have sent more bytes: in TLS 1.3 it may do so right after its certificate.
    let mayHaveUnreadBytes: Bool

    /// Reads the latest error from OpenSSL's queue without removing it.
    init(latestOn connection: OpaquePointer, errno: CInt, mayHaveUnreadBytes: Bool) {
        let code = ERR_peek_error()
        var reason =
            if code != 0, let words = ERR_reason_error_string(code) {
                String(cString: words)
            } else {
                "the connection ended (errno \(errno))"
            }
        let verdict = SSL_get_verify_result(connection)
        if verdict != X509_V_OK { reason += ": " + String(cString: X509_verify_cert_error_string(verdict)) }
        self.reason = reason
        self.mayHaveUnreadBytes = mayHaveUnreadBytes
    }
}
