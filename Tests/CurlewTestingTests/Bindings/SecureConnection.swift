// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Glibc

/// The TLS options of the client.
struct SecureSettings {
    var authorityPEM: String
    var host = "localhost"
    var maximumVersion = TLS1_3_VERSION
    var offersHTTP = true
    var session: SecureSession?
    var identity: TestIdentity?
    var requestsOCSPResponse = false
    var ciphers: String?
    var securityLevel: CInt?
    /// Receives the reason if the handshake or the first read after it fails.
    var reasons: Reasons?
}

/// OpenSSL's reason for a failure of the client.
final class Reasons {
    private(set) var list: [String] = []

    fileprivate func note() {
        if let words = ERR_reason_error_string(ERR_peek_error()) { list.append(String(cString: words)) }
    }
}

/// A TLS session that a later connection can resume.
final class SecureSession {
    fileprivate let pointer: OpaquePointer

    fileprivate init(_ pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        SSL_SESSION_free(pointer)
    }
}

/// The client side of TLS, which verifies chain and host name.
final class SecureConnection {
    private let context: OpaquePointer
    private let connection: OpaquePointer
    private let reasons: Reasons?

    init(_ socket: CInt, _ settings: SecureSettings) throws {
        guard let context = SSL_CTX_new(TLS_client_method()), let connection = SSL_new(context) else {
            throw WireError.handshakeFailed
        }
        self.context = context
        self.connection = connection
        reasons = settings.reasons
        signal(SIGPIPE, SIG_IGN)
        trust(settings.authorityPEM)
        configure(settings)
        if let identity = settings.identity { show(identity) }
        if let session = settings.session { SSL_set_session(connection, session.pointer) }
        SSL_set_fd(connection, socket)
        guard SSL_connect(connection) == 1 else {
            reasons?.note()
            ERR_clear_error()
            throw WireError.handshakeFailed
        }
    }

    deinit {
        SSL_free(connection)
        SSL_CTX_free(context)
    }

    var hasPending: Bool { SSL_pending(connection) > 0 }

    var session: SecureSession? { SSL_get1_session(connection).map(SecureSession.init) }

    var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(connection, &start, &count)
        return start.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
    }

    /// The OCSP response that the server stapled.
    var ocspResponse: [UInt8]? {
        var start: UnsafePointer<UInt8>?
        let count = SSL_ctrl(connection, SSL_CTRL_GET_TLSEXT_STATUS_REQ_OCSP_RESP, 0, &start)
        return start.map { Array(UnsafeBufferPointer(start: $0, count: count)) }
    }

    /// The certificates that the server sent, in order.
    var servedChain: [[UInt8]] {
        guard let list = SSL_get_peer_cert_chain(connection) else { return [] }
        return (0..<curlew_count_certificates(list)).compactMap { curlew_certificate_at(list, $0).map(encode) }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        Int(SSL_write(connection, bytes.baseAddress, CInt(bytes.count)))
    }

    func read(_ scratch: inout [UInt8]) throws -> Int {
        ERR_clear_error()
        let count = SSL_read(connection, &scratch, CInt(scratch.count))
        if count > 0 { return Int(count) }
        reasons?.note()
        let error = SSL_get_error(connection, count)
        if error == SSL_ERROR_ZERO_RETURN { throw WireError.ended(.closeNotify) }
        throw WireError.ended(error == SSL_ERROR_SYSCALL ? .reset : .fin)
    }

    private func trust(_ pem: String) {
        withCertificate(pem: pem) { certificate in
            let store = X509_STORE_new()
            X509_STORE_add_cert(store, certificate)
            SSL_ctrl(connection, SSL_CTRL_SET_VERIFY_CERT_STORE, 0, UnsafeMutableRawPointer(store))
        }
        SSL_set_verify(connection, SSL_VERIFY_PEER, nil)
    }

    private func configure(_ settings: SecureSettings) {
        SSL_ctrl(connection, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(settings.maximumVersion), nil)
        if settings.maximumVersion < TLS1_2_VERSION { SSL_set_security_level(connection, 0) }
        if let level = settings.securityLevel { SSL_set_security_level(connection, level) }
        if let ciphers = settings.ciphers { SSL_set_cipher_list(connection, ciphers) }
        if settings.requestsOCSPResponse {
            SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_STATUS_REQ_TYPE, Int(TLSEXT_STATUSTYPE_ocsp), nil)
        }
        let parameters = SSL_get0_param(connection)
        if settings.host.contains(where: \.isLetter) {
            var name = Array(settings.host.utf8CString)
            SSL_ctrl(connection, SSL_CTRL_SET_TLSEXT_HOSTNAME, Int(TLSEXT_NAMETYPE_host_name), &name)
            X509_VERIFY_PARAM_set1_host(parameters, settings.host, 0)
        } else {
            X509_VERIFY_PARAM_set1_ip_asc(parameters, settings.host)
        }
        guard settings.offersHTTP else { return }
        let offer = [2] + Array("h2".utf8) + [8] + Array("http/1.1".utf8)
        SSL_set_alpn_protos(connection, offer, UInt32(offer.count))
    }

    private func show(_ identity: TestIdentity) {
        withCertificate(pem: identity.certificatePEM) { certificate in _ = SSL_use_certificate(connection, certificate)
        }
        for one in identity.intermediates {
            // The connection adds its own reference.
            withCertificate(pem: one.pem) { certificate in
                _ = SSL_ctrl(connection, SSL_CTRL_CHAIN_CERT, 1, certificate.map { UnsafeMutableRawPointer($0) })
            }
        }
        let bio = BIO_new(BIO_s_mem())
        BIO_puts(bio, identity.privateKeyPEM)
        let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil)
        SSL_use_PrivateKey(connection, key)
        EVP_PKEY_free(key)
        BIO_free(bio)
    }

    private func withCertificate(pem: String, _ body: (OpaquePointer?) -> Void) {
        let bio = BIO_new(BIO_s_mem())
        BIO_puts(bio, pem)
        let certificate = PEM_read_bio_X509(bio, nil, nil, nil)
        body(certificate)
        X509_free(certificate)
        BIO_free(bio)
    }
}
