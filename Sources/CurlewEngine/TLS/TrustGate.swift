// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The judge of one connection, called by OpenSSL in the middle of its handshake and freed with its SSL_CTX.
final class TrustGate {
    private let domain: TrustDomain
    private let host: String
    private let port: UInt16
    /// Why the server was refused.
    private(set) var refusal: (any Error)?
    /// Whether the server said that it sends no more (close_notify, RFC 8446 §6.1): nobody can have cut it off.
    private(set) var isEndAnnounced = false

    init(domain: TrustDomain, host: String, port: UInt16) {
        self.domain = domain
        self.host = host
        self.port = port
    }

    /// Makes this gate the only judge of the connections of an SSL_CTX.
    ///
    /// False when there are no roots to judge by.
    func install(in context: UnsafeMutableRawPointer) -> Bool {
        guard let roots = domain.preparedRoots else { return false }
        return curlew_tls_install(
            context, roots.pointer, Unmanaged.passRetained(self).toOpaque(),
            { store, judge in
                guard let store, let judge else { return 0 }
                return Unmanaged<TrustGate>.fromOpaque(judge).takeUnretainedValue().accepts(store) ? 1 : 0
            },
            { judge in
                guard let judge else { return }
                Unmanaged<TrustGate>.fromOpaque(judge).takeUnretainedValue().isEndAnnounced = true
            },
            { judge in if let judge { Unmanaged<TrustGate>.fromOpaque(judge).release() } })
    }

    /// The gate of the connection under a running transfer, which another transfer may have opened.
    ///
    /// Nil outside libcurl's callbacks.
    static func ofConnection(under handle: EasyHandle) -> TrustGate? {
        curlew_tls_judge(handle.curl).map { Unmanaged<TrustGate>.fromOpaque($0).takeUnretainedValue() }
    }

    private func accepts(_ store: OpaquePointer) -> Bool {
        let isVerified = X509_verify_cert(store) == 1
        let code = X509_STORE_CTX_get_error(store)
        let facts = PeerFacts(
            host: host, port: port,
            served: TrustGate.chain(store, verified: false),
            verified: isVerified ? TrustGate.chain(store, verified: true) : [],
            chainError: isVerified ? nil : X509_verify_cert_error_string(Int(code)).map { String(cString: $0) },
            chainErrorCode: isVerified ? X509_V_OK : code,
            chainErrorDepth: Int(X509_STORE_CTX_get_error_depth(store)),
            hostMatches: curlew_leaf_matches(store, host))
        refusal = domain.judge(facts)
        // OpenSSL keeps the error of a chain we accept, and libcurl would refuse it afterwards.
        X509_STORE_CTX_set_error(store, refusal == nil ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION)
        return refusal == nil
    }

    private static func chain(_ store: OpaquePointer, verified: Bool) -> [[UInt8]] {
        (0..<curlew_chain_count(store, verified)).compactMap { index in
            var length: CInt = 0
            guard let der = curlew_chain_der(store, verified, index, &length) else { return nil }
            defer { curlew_free(der) }
            return Array(UnsafeBufferPointer(start: der, count: Int(length)))
        }
    }
}
