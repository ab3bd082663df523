// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS: verification of connections. A store holds roots. A domain is the scope that shares one judge; no other domain
// uses its connections and TLS sessions. A `ConnectionJudge` judges one connection.

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// Root certificates, parsed once and shared by every connection that trusts them.
package final class TrustStore: @unchecked Sendable {
    // Safe because an X509_STORE counts its references and locks itself; it is filled before it is shared.
    let pointer: OpaquePointer
    package private(set) var count = 0

    /// The default paths of root bundles on Debian and Ubuntu, Alpine, Red Hat and Fedora, and SUSE.
    package static let bundlePaths = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem",
        "/var/lib/ca-certificates/ca-bundle.pem",
    ]
    package static let directoryPaths = ["/etc/ssl/certs", "/etc/pki/tls/certs"]

    package init(_ certificates: [X509Certificate] = []) throws(EngineFailure) {
        guard let pointer = curlew_store_make() else {
            throw EngineFailure(.noResources(errno: ENOMEM), phase: .securing)
        }
        self.pointer = pointer
        for certificate in certificates where X509_STORE_add_cert(pointer, certificate.pointer) == 1 { count += 1 }
    }

    deinit { X509_STORE_free(pointer) }

    /// Adds the system's roots from `SSL_CERT_FILE` and `SSL_CERT_DIR` when set, otherwise from the first default path.
    ///
    /// Set-user-ID programs and programs with file capabilities ignore both variables.
    /// - Throws: `EngineFailure` with the paths, when no roots are found.
    package func addSystemRoots(
        environment: (String) -> String? = { TrustEnvironment.variable($0) }
    ) throws(EngineFailure) {
        let file = environment("SSL_CERT_FILE").flatMap { $0.isEmpty ? nil : $0 }
        let directories = environment("SSL_CERT_DIR").flatMap { $0.isEmpty ? nil : $0 }.map {
            $0.split(separator: ":").map(String.init)
        }
        let bundles = file.map { [$0] } ?? (directories == nil ? TrustStore.bundlePaths : [])
        var found = 0
        if let bundle = bundles.first(where: { access($0, R_OK) == 0 }), X509_STORE_load_file(pointer, bundle) == 1 {
            found += 1
        }
        let places = directories ?? (file == nil ? TrustStore.directoryPaths : [])
        // Read the directories now: OpenSSL would read them during handshakes.
        for directory in directories ?? (found == 0 ? places : []) {
            let files = TrustStore.certificateFiles(directory)
            for file in files where X509_STORE_load_file(pointer, file) == 1 { found += 1 }
        }
        ERR_clear_error()
        count += found
        guard found > 0 else {
            throw EngineFailure(.noRoots(places: bundles + places), phase: .securing)
        }
    }

    /// Returns the files of a directory that have OpenSSL's hash names, such as `4bfab552.0`.
    private static func certificateFiles(_ directory: String) -> [String] {
        guard let handle = opendir(directory) else { return [] }
        defer { closedir(handle) }
        var files: [String] = []
        while let entry = readdir(handle) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { raw in
                String(decoding: raw.prefix { $0 != 0 }, as: UTF8.self)
            }
            let parts = name.split(separator: ".")
            if parts.count == 2, parts[0].count == 8, parts[0].allSatisfy(\.isHexDigit), Int(parts[1]) != nil {
                files.append("\(directory)/\(name)")
            }
        }
        return files
    }

    private static let shared = Lock<TrustStore?>(nil)

    /// Returns the system's roots, loaded on first use in this process (about 20 ms of CPU with Debian's bundle).
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
