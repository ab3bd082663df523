// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Glibc
import Testing

@testable import CurlewEngine

@Suite("TrustStore")
struct TrustStoreTests {
    /// A folder below the system's temporary one, gone with the test.
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

    private func store(_ bytes: [UInt8]) throws(EngineFailure) -> TrustStore {
        let store = try TrustStore()
        try store.add(bytes, named: "these")
        return store
    }

    /// What a failure says about the roots; nil for other failures.
    private func complaint(_ failure: EngineFailure?) -> String? {
        if case .unreadableRoots(let text) = failure?.reason { text } else { nil }
    }

    private func places(_ failure: EngineFailure?) -> [String]? {
        if case .noRoots(let places) = failure?.reason { places } else { nil }
    }

    // MARK: Certificates at hand

    @Test func takesPEMWithAnyNumberAndDER() throws {
        let (one, two) = (try TestAuthority(), try TestAuthority())
        #expect(try store(Array(one.certificatePEM.utf8)).count == 1)
        #expect(try store(Array(("# roots\n" + one.certificatePEM + "\n" + two.certificatePEM).utf8)).count == 2)
        let both = try store(one.certificateDER)
        #expect(both.count == 1)
        try both.add(two.certificateDER, named: "more")
        #expect(both.count == 2)
    }

    @Test func aCertificateGivenTwiceIsNoError() throws {
        let pem = try TestAuthority().certificatePEM
        #expect(try store(Array((pem + pem).utf8)).count == 2)
    }

    private static let unreadable = "these is neither PEM nor DER certificates"
    private static let emptyPEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

    @Test(arguments: [
        ([UInt8](), unreadable), (Array("hello".utf8), "these holds no certificate"),
        (Array(emptyPEM.utf8), unreadable), ([0x30, 0x82, 0xFF, 0xFF, 1, 2, 3], unreadable),
    ])
    func refusesGarbage(bytes: [UInt8], message: String) {
        let failure = #expect(throws: EngineFailure.self) { try store(bytes) }
        #expect(complaint(failure) == message)
        #expect(failure?.phase == .securing)
    }

    @Test func refusesWhatFollowsADERCertificate() throws {
        let der = try TestAuthority().certificateDER
        let failure = #expect(throws: EngineFailure.self) { try store(der + [0]) }
        #expect(complaint(failure) == Self.unreadable)
        let cut = #expect(throws: EngineFailure.self) { try store(Array(der.dropLast())) }
        #expect(complaint(cut) != nil)
    }

    @Test func refusesPEMThatBreaksInTheMiddle() throws {
        let pem = try TestAuthority().certificatePEM
        let broken = pem + pem.prefix(pem.count / 2)
        let failure = #expect(throws: EngineFailure.self) { try store(Array(broken.utf8)) }
        #expect(complaint(failure) == Self.unreadable)
    }

    // MARK: The system's roots

    @Test func theEnvironmentsFileIsTaken() throws {
        let folder = try Folder()
        let file = try folder.write("roots.pem", try TestAuthority().certificatePEM)
        let store = try TrustStore()
        try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : nil }
        #expect(store.count >= 1)
    }

    @Test func theEnvironmentsFoldersAreTakenWhenTheyHoldHashNames() throws {
        let (empty, named) = (try Folder(), try Folder())
        let pem = try TestAuthority().certificatePEM
        try empty.write("root.pem", pem)
        try named.write("4bfab552.0", pem)
        let store = try TrustStore()
        try store.addSystemRoots { $0 == "SSL_CERT_DIR" ? "\(empty.path):/nowhere:\(named.path)" : nil }
        #expect(store.count == 1)
    }

    @Test func noneFoundNamesThePlacesLookedAt() throws {
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
    func aFileThatWasNamedIsNotReplacedByTheSystems(_ file: String) throws {
        let store = try TrustStore()
        let failure = #expect(throws: EngineFailure.self) {
            try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : nil }
        }
        #expect(places(failure) == [file])
        #expect(store.count == 0)
    }

    @Test func anUnreadableFileIsNoRoots() throws {
        let folder = try Folder()
        let file = try folder.write("roots.pem", "no certificate here")
        let store = try TrustStore()
        let failure = #expect(throws: EngineFailure.self) {
            try store.addSystemRoots { $0 == "SSL_CERT_FILE" ? file : "" }
        }
        #expect(places(failure) == [file])
    }

    @Test func thePlacesOfTheDistributionsAreKnown() {
        let all = TrustStore.bundlePlaces + TrustStore.directoryPlaces
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
    @Test func rootsAreMadeOnceAndOnlyWhenPrepared() throws {
        let made = Lock(0)
        let domain = TrustDomain(
            roots: { () throws(EngineFailure) in
                made.withLock { $0 += 1 }
                return try TrustStore()
            }, judge: { _ in nil })
        #expect(domain.preparedRoots == nil)
        try domain.prepare()
        let roots = try #require(domain.preparedRoots)
        try domain.prepare()
        #expect(domain.preparedRoots === roots)
        #expect(made.withLock { $0 } == 1)
    }

    @Test func aFailureIsToldAndTriedAgain() throws {
        let tries = Lock(0)
        let domain = TrustDomain(
            roots: { () throws(EngineFailure) in
                let number = tries.withLock { tries in
                    tries += 1
                    return tries
                }
                if number == 1 { throw EngineFailure(.unreadableRoots("x"), phase: .securing) }
                return try TrustStore()
            }, judge: { _ in nil })
        #expect(throws: EngineFailure.self) { try domain.prepare() }
        #expect(domain.preparedRoots == nil)
        try domain.prepare()
        #expect(domain.preparedRoots != nil)
    }
}
