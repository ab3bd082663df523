// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS: what a connection is judged by. A store holds roots, a domain is everything that shares one judgement (its
// connections and TLS sessions are never used by another), a gate is the judge of one connection.

internal import CurlewShims
internal import Glibc

/// Root certificates, parsed once and shared by every connection that trusts them.
package final class TrustStore: @unchecked Sendable {
    // Safe because an X509_STORE counts its references and locks itself; it is filled before anyone else sees it.
    let pointer: OpaquePointer
    package private(set) var count = 0

    /// Where Linux distributions keep their roots: Debian and Ubuntu, Alpine, Red Hat and Fedora, SUSE.
    package static let bundlePlaces = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
        "/var/lib/ca-certificates/ca-bundle.pem",
    ]
    package static let directoryPlaces = ["/etc/ssl/certs", "/etc/pki/tls/certs"]

    package init() throws(EngineFailure) {
        guard let pointer = X509_STORE_new() else { throw EngineFailure(.noResources(errno: ENOMEM), phase: .securing) }
        self.pointer = pointer
        // As libcurl does: an intermediate that was added as a root ends the chain, and trusted issuers come first.
        X509_STORE_set_flags(pointer, UInt(X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST))
    }

    deinit { X509_STORE_free(pointer) }

    /// Adds the certificates of a PEM text or one DER certificate, before the store is shared.
    package func add(_ bytes: [UInt8], named name: String) throws(EngineFailure) {
        let added = bytes.withUnsafeBufferPointer { curlew_store_add(pointer, $0.baseAddress, $0.count) }
        guard added > 0 else {
            let reason = added == 0 ? "holds no certificate" : "is neither PEM nor DER certificates"
            throw EngineFailure(.unreadableRoots("\(name) \(reason)"), phase: .securing)
        }
        count += Int(added)
    }

    /// Adds the system's roots: `SSL_CERT_FILE` and `SSL_CERT_DIR` when set, else the first well-known place.
    package func addSystemRoots(
        environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } }
    ) throws(EngineFailure) {
        let file = environment("SSL_CERT_FILE").flatMap { $0.isEmpty ? nil : $0 }
        let directories = environment("SSL_CERT_DIR").flatMap { $0.isEmpty ? nil : $0 }.map {
            $0.split(separator: ":").map(String.init)
        }
        let bundles = file.map { [$0] } ?? (directories == nil ? TrustStore.bundlePlaces : [])
        if let bundle = bundles.first(where: { access($0, R_OK) == 0 }), X509_STORE_load_file(pointer, bundle) == 1 {
            count += 1
        }
        let places = directories ?? (file == nil ? TrustStore.directoryPlaces : [])
        for directory in directories ?? (count == 0 ? places : [])
        where TrustStore.hasCertificates(directory) && X509_STORE_load_path(pointer, directory) == 1 {
            count += 1
        }
        ERR_clear_error()
        guard count > 0 else {
            throw EngineFailure(.noRoots(places: bundles + places), phase: .securing)
        }
    }

    /// Whether a directory holds files by OpenSSL's hash names, such as `4bfab552.0`, which alone are looked up.
    private static func hasCertificates(_ directory: String) -> Bool {
        guard let handle = opendir(directory) else { return false }
        defer { closedir(handle) }
        while let entry = readdir(handle) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            let parts = name.split(separator: ".")
            if parts.count == 2, parts[0].count == 8, parts[0].allSatisfy(\.isHexDigit), Int(parts[1]) != nil {
                return true
            }
        }
        return false
    }

    private static let shared = Lock<TrustStore?>(nil)

    /// The system's roots, loaded on first use in this process (about 20 ms of CPU with Debian's bundle).
    package static func system() throws(EngineFailure) -> TrustStore {
        try shared.withLock { (shared) throws(EngineFailure) in
            if let shared { return shared }
            let store = try TrustStore()
            try store.addSystemRoots()
            shared = store
            return store
        }
    }
}
