// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// A client certificate, its private key and its intermediate certificates.
package final class X509Identity: @unchecked Sendable {
    // Safe because OpenSSL counts the key's references and locks its caches, and no code here changes the key.
    package let leaf: X509Certificate
    package let chain: [X509Certificate]
    private let key: OpaquePointer

    /// Creates an identity from certificates in any order and a key in PEM.
    ///
    /// The certificate that belongs to the key becomes the leaf.
    package init(
        certificates: [X509Certificate], keyPEM: [UInt8], passphrase: String?
    ) throws(UnreadableTrust) {
        let key = keyPEM.withUnsafeBufferPointer { bytes in
            if let passphrase { return curlew_key_read(bytes.baseAddress, bytes.count, passphrase) }
            return curlew_key_read(bytes.baseAddress, bytes.count, nil)
        }
        guard let key else { throw UnreadableTrust(reason: String(cString: curlew_tls_reason())) }
        guard let leaf = certificates.first(where: { X509_check_private_key($0.pointer, key) == 1 }) else {
            EVP_PKEY_free(key)
            ERR_clear_error()
            throw UnreadableTrust(reason: "no certificate belongs to the private key")
        }
        ERR_clear_error()
        self.key = key
        self.leaf = leaf
        chain = certificates.filter { $0 !== leaf }
        try requireUsable()
    }

    private func requireUsable() throws(UnreadableTrust) {
        let others: [OpaquePointer?] = chain.map(\.pointer)
        let isUsable = others.withUnsafeBufferPointer {
            curlew_identity_is_usable(leaf.pointer, key, $0.baseAddress, CInt($0.count))
        }
        guard !isUsable else { return }
        throw UnreadableTrust(reason: String(cString: curlew_tls_reason()))
    }

    package init(pkcs12: [UInt8], passphrase: String) throws(UnreadableTrust) {
        var (key, leaf, others): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
        let isRead = pkcs12.withUnsafeBufferPointer {
            curlew_pkcs12_read($0.baseAddress, $0.count, passphrase, &key, &leaf, &others)
        }
        defer { curlew_stack_free(others) }
        let certificate = X509Certificate(leaf)
        guard isRead, let key, let certificate else {
            EVP_PKEY_free(key)
            let reason = isRead ? "it has no private key with its certificate" : String(cString: curlew_tls_reason())
            throw UnreadableTrust(reason: reason)
        }
        self.key = key
        self.leaf = certificate
        chain = X509Certificate.all(of: others)
        try requireUsable()
    }

    deinit { EVP_PKEY_free(key) }

    /// Sets the certificates and the key for the handshake of a connection.
    func use(in connection: OpaquePointer) -> Bool {
        let others: [OpaquePointer?] = chain.map(\.pointer)
        return others.withUnsafeBufferPointer {
            curlew_identity_use(connection, leaf.pointer, key, $0.baseAddress, CInt($0.count))
        }
    }
}

extension X509Identity: Hashable {
    /// Whether both have equal certificates, which implies equal keys.
    package static func == (one: X509Identity, other: X509Identity) -> Bool {
        one === other || one.leaf == other.leaf && one.chain == other.chain
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(leaf) }
}
