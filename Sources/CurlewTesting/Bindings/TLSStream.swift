// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// A connection with TLS.
///
/// Only one thread uses a stream.
final class TLSStream: ByteStream {
    let waiter: SocketWaiter
    private let connection: OpaquePointer
    private var scratch = [UInt8](repeating: 0, count: receiveSize)

    /// Takes ownership of the connection.
    init(_ connection: OpaquePointer, waiter: SocketWaiter) {
        self.connection = connection
        self.waiter = waiter
    }

    deinit {
        SSL_free(connection)
    }

    func receive(appendingTo buffer: inout [UInt8]) throws -> Bool {
        while true {
            ERR_clear_error()
            let count = SSL_read(connection, &scratch, CInt(scratch.count))
            if count > 0 {
                buffer.append(contentsOf: scratch[..<Int(count)])
                return true
            }
            guard try waitToRetry(after: count) else { return false }
        }
    }

    func send(_ bytes: ArraySlice<UInt8>) throws {
        var rest = bytes
        while !rest.isEmpty {
            ERR_clear_error()
            // Write one record of at most 16 KiB at a time, so that a successful write is complete.
            let count = rest.withUnsafeBytes { SSL_write(connection, $0.baseAddress, CInt(min($0.count, 16_384))) }
            if count > 0 {
                rest = rest.dropFirst(Int(count))
            } else if try !waitToRetry(after: count) {
                throw Disconnect.peerClosed
            }
        }
    }

    func receiveAvailable(appendingTo buffer: inout [UInt8]) throws -> Arrival {
        ERR_clear_error()
        let count = SSL_read(connection, &scratch, CInt(scratch.count))
        if count > 0 {
            buffer.append(contentsOf: scratch[..<Int(count)])
            return .bytes
        }
        return isBlocked(after: count) ? .nothing : .end
    }

    /// Sends as many of the bytes as the kernel accepts now, and returns their number.
    ///
    /// After a write that returns 0, the next call must begin with the same bytes; more bytes may follow them.
    func sendAvailable(_ bytes: ArraySlice<UInt8>) throws -> Int {
        ERR_clear_error()
        let count = bytes.withUnsafeBytes { SSL_write(connection, $0.baseAddress, CInt(min($0.count, 16_384))) }
        if count > 0 { return Int(count) }
        guard isBlocked(after: count) else { throw Disconnect.peerClosed }
        return 0
    }

    private func isBlocked(after code: CInt) -> Bool {
        switch SSL_get_error(connection, code) {
        case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: true
        case SSL_ERROR_SYSCALL: errno == EINTR
        default: false
        }
    }

    func announceEnd() {
        ERR_clear_error()
        SSL_shutdown(connection)
    }

    /// Waits until OpenSSL can continue; returns false at the end of the stream.
    func waitToRetry(after code: CInt) throws -> Bool {
        switch SSL_get_error(connection, code) {
        case SSL_ERROR_WANT_READ: try waiter.untilReadable()
        case SSL_ERROR_WANT_WRITE: try waiter.untilWritable()
        case SSL_ERROR_SYSCALL where errno == EINTR: break
        default: return false
        }
        return true
    }

    /// The results of the handshake.
    var details: RecordedRequest.TLS {
        let name = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name)
        let certificate = SSL_get0_peer_certificate(connection)
        return RecordedRequest.TLS(
            version: String(cString: SSL_get_version(connection)),
            cipher: String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(connection))),
            isResumed: SSL_session_reused(connection) == 1,
            serverName: name.map { String(cString: $0) },
            applicationProtocol: applicationProtocol,
            requestedOCSPResponse: SSL_ctrl(connection, SSL_CTRL_GET_TLSEXT_STATUS_REQ_TYPE, 0, nil)
                == Int(TLSEXT_STATUSTYPE_ocsp),
            clientCertificate: certificate.map { certificate in bytes { i2d_X509(certificate, $0) } },
            clientCommonName: certificate.flatMap(commonName),
            clientIntermediates: clientIntermediates
        )
    }

    private var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(connection, &start, &count)
        return start.map { String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self) }
    }

    private var clientIntermediates: [[UInt8]] {
        guard let list = SSL_get_peer_cert_chain(connection) else { return [] }
        return (0..<curlew_count_certificates(list)).compactMap { index in
            curlew_certificate_at(list, index).map { certificate in bytes { i2d_X509(certificate, $0) } }
        }
    }
}

/// Returns the subject's common name; nil if the subject has no common name.
private func commonName(of certificate: OpaquePointer) -> String? {
    let subject = X509_get_subject_name(certificate)
    let place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
    guard place >= 0, let value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, place)) else { return nil }
    let text = UnsafeBufferPointer(start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value)))
    return String(decoding: text, as: UTF8.self)
}
