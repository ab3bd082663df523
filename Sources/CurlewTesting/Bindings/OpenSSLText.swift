// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims

/// Reads the certificate in a PEM text; the caller owns the result.
func readCertificate(_ pem: String) throws -> OpaquePointer {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    guard let certificate = PEM_read_bio_X509(bio, nil, nil, nil) else {
        throw TestingError.openSSL("Reading a certificate")
    }
    return certificate
}

/// Reads the private key in a PEM text; the caller owns the result.
func readKey(_ pem: String) throws -> OpaquePointer {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    guard let key = PEM_read_bio_PrivateKey(bio, nil, nil, nil) else {
        throw TestingError.openSSL("Reading a private key")
    }
    return key
}

/// Reads the revocation list in a PEM text; the caller owns the result.
func readRevocationList(_ pem: String) throws -> OpaquePointer {
    let bio = try reader(pem)
    defer { BIO_free(bio) }
    guard let list = PEM_read_bio_X509_CRL(bio, nil, nil, nil) else {
        throw TestingError.openSSL("Reading a revocation list")
    }
    return list
}

/// Returns the bytes that an `i2d_…` function writes.
func bytes(_ encode: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> CInt) -> [UInt8] {
    let count = Int(max(0, encode(nil)))
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
        var cursor = buffer.baseAddress
        used = count > 0 ? Int(encode(&cursor)) : 0
    }
}

/// Returns the text that a `PEM_write_bio_…` function writes.
func text(_ write: (OpaquePointer) -> CInt) throws -> String {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TestingError.openSSL("Writing PEM") }
    defer { BIO_free(bio) }
    guard write(bio) == 1 else { throw TestingError.openSSL("Writing PEM") }
    let count = BIO_ctrl_pending(bio)
    let text = [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
        used = Int(max(0, BIO_read(bio, buffer.baseAddress, CInt(count))))
    }
    return String(decoding: text, as: UTF8.self)
}

private func reader(_ pem: String) throws -> OpaquePointer {
    guard let bio = BIO_new(BIO_s_mem()) else { throw TestingError.openSSL("Reading PEM") }
    BIO_puts(bio, pem)
    return bio
}

extension TestingError {
    /// Makes an error from OpenSSL's error queue and empties the queue.
    static func openSSL(_ action: String) -> TestingError {
        let code = ERR_get_error()
        ERR_clear_error()
        let reason = ERR_reason_error_string(code).map { String(cString: $0) }
        return TestingError("\(action) failed: \(reason ?? "OpenSSL gives no reason").")
    }
}
