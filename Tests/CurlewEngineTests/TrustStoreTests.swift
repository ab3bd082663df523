// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

@Suite("TrustStore")
struct TrustStoreTests {
    /// A folder in the system's temporary folder, removed in `deinit`.
    private final class Folder {
        let path: String

        init() throws {
            var template = Array("/tmp/curlew-trust-XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { throw Unreadable(path: "/tmp") }
            path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }

        deinit {
            for name in names { unlink("\(path)/\(name)") }
            rmdir(path)
        }

        private var names: [String] = []

        @discardableResult
        func write(_ name: String, _ text: String) throws -> String {
            let file = "\(path)/\(name)"
            names.append(name)
            guard let stream = fopen(file, "we") else { throw Unreadable(path: file) }
            fputs(text, stream)
            fclose(stream)
            return file
        }
    }

    private func places(_ failure: EngineFailure?) -> [String]? {
        if case .noRoots(let places) = failure?.reason { places } else { nil }
    }

    // MARK: Certificates in memory

    private func read(_ bytes: [UInt8]) throws -> [X509Certificate] { try X509Certificate.read(bytes).get() }

    @Test func pemAndDERCertificatesAreRead() throws {
        let (one, two) = (try TestAuthority(), try TestAuthority())
        #expect(try read(Array(one.certificatePEM.utf8)).map(\.der) == [one.certificateDER])
        let both = try read(Array(("# roots\n" + one.certificatePEM + "\n" + two.certificatePEM).utf8))
        #expect(both.map(\.der) == [one.certificateDER, two.certificateDER])
        #expect(try read(one.certificateDER) == [both[0]])
        #expect(try TrustStore(both).count == 2)
    }

    @Test func duplicateCertificatesAreAccepted() throws {
        let pem = try TestAuthority().certificatePEM
        #expect(try TrustStore(read(Array((pem + pem).utf8))).count == 2)
    }

    @Test func inputWithoutCertificatesIsEmpty() throws {
        #expect(try read([]).isEmpty)
        for text in ["hello", "0", "01"] { #expect(try read(Array(text.utf8)).isEmpty) }
    }

    private static let emptyPEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    @Test(arguments: [Array(emptyPEM.utf8), [0x30, 0x82, 0xFF, 0xFF, 1, 2, 3], [0x30, 0x80]])
    func malformedCertificatesAreRejected(bytes: [UInt8]) {
        let failure = #expect(throws: UnreadableTrust.self) { try read(bytes) }
        #expect(failure?.reason.isEmpty == false)
    }

    @Test func truncatedDERAndTrailingBytesAreRejected() throws {
        let der = try TestAuthority().certificateDER
        #expect(throws: UnreadableTrust.self) { try read(der + [0]) }
        #expect(throws: UnreadableTrust.self) { try read(Array(der.dropLast())) }
    }

    @Test func truncatedPEMIsRejected() throws {
        let pem = try TestAuthority().certificatePEM
        let broken = pem + pem.prefix(pem.count / 2)
        #expect(throws: UnreadableTrust.self) { try read(Array(broken.utf8)) }
    }

    // MARK: The system's roots

    @Test func sslCertFileIsRead() throws {
        let folder = try Folder()
        let file = try folder.write("roots.pem", try TestAuthority().certificatePEM)
        let store = try TrustStore()
        try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : nil }
        #expect(store.count >= 1)
    }

    @Test func existingCertificatesDoNotCountAsSystemRoots() throws {
        let folder = try Folder()
        let pem = try TestAuthority().certificatePEM
        let own = try TrustStore(read(Array(pem.utf8)))
        #expect(throws: EngineFailure.self) {
            try own.addSystemRoots { $0 == "SSL_CERT_FILE" ? "/no/such.pem" : "" }
        }
        let file = try folder.write("roots.pem", pem)
        try own.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : nil }
        #expect(own.count >= 2)
    }

    @Test func sslCertDirFoldersNeedHashedNames() throws {
        let (empty, named) = (try Folder(), try Folder())
        let pem = try TestAuthority().certificatePEM
        try empty.write("root.pem", pem)
        try named.write("4bfab552.0", pem)
        let store = try TrustStore()
        try store.addSystemRoots { $0 == "SSL_CERT_DIR" ? "\(empty.path):/nowhere:\(named.path)" : nil }
        #expect(store.count == 1)
    }

    @Test func missingRootsErrorListsTheSearchedPaths() throws {
        let folder = try Folder()
        let names = ["root.pem", "4bfab552.x", "4bfab55.0", "4bfab5zz.0", "4bfab552.0.1"]
        for name in names { try folder.write(name, "x") }
        let store = try TrustStore()
        let failure = #expect(throws: EngineFailure.self) {
            try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? "/no/such.pem" : folder.path + ":/nowhere" }
        }
        #expect(places(failure) == ["/no/such.pem", folder.path, "/nowhere"])
        #expect(failure?.phase == .securing)
        #expect(store.count == 0)
    }

    @Test(arguments: ["/nonexistent/ca.pem", "/etc/hostname"])
    func unusableSSLCertFileIsNotReplacedBySystemFiles(_ file: String) throws {
        let store = try TrustStore()
        let failure = #expect(throws: EngineFailure.self) {
            try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : nil }
        }
        #expect(places(failure) == [file])
        #expect(store.count == 0)
    }

    @Test func sslCertFileWithoutCertificatesFails() throws {
        let folder = try Folder()
        let file = try folder.write("roots.pem", "no certificate here")
        let store = try TrustStore()
        let failure = #expect(throws: EngineFailure.self) {
            try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : "" }
        }
        #expect(places(failure) == [file])
    }

    @Test func environmentIsReadWithoutElevatedPrivileges() {
        #expect(TrustEnvironment.variable("PATH") == getenv("PATH").map { String(cString: $0) })
        #expect(TrustEnvironment.variable("CURLEW_NO_SUCH_VARIABLE") == nil)
    }

    @Test func rootPathsOfMajorDistributionsAreKnown() {
        let all = TrustStore.bundlePaths + TrustStore.directoryPaths
        for place in [
            "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
            "/etc/ssl/ca-bundle.pem", "/etc/ssl/certs",
        ] {
            #expect(all.contains(place))
        }
    }
}

@Suite("TrustDomain")
struct TrustDomainTests {
    @Test func incompletePreparationIsNotRetriedAtOnce() throws {
        let made = Lock(0)
        let domain = TrustDomain(
            prepare: {
                made.withLock { made in
                    made += 1
                    return made == 2
                }
            }, judge: { _ in nil })
        #expect(!domain.isReady)
        for _ in 0..<4 {
            try domain.prepare()
            #expect(domain.isReady)
        }
        #expect(made.withLock { $0 } == 1, "incomplete preparation is retried, but not at once")
    }

    @Test func failedPreparationIsRetried() throws {
        let tries = Lock(0)
        let domain = TrustDomain(
            prepare: { () throws(EngineFailure) in
                let number = tries.withLock { tries in
                    tries += 1
                    return tries
                }
                if number == 1 { throw EngineFailure(.noRoots(places: ["x"]), phase: .securing) }
                return true
            }, judge: { _ in nil })
        #expect(throws: EngineFailure.self) { try domain.prepare() }
        #expect(!domain.isReady)
        try domain.prepare()
        #expect(domain.isReady)
    }
}
