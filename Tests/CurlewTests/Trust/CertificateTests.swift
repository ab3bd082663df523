// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct CertificateTests {
    /// A temporary directory, removed at deinitialization.
    private final class Folder {
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID())").path

        init() throws { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func write(_ name: String, _ bytes: some Sequence<UInt8>) throws {
            try Data(bytes).write(to: URL(filePath: "\(path)/\(name)"))
        }
    }

    @Test func certificatePropertiesAreRead() throws {
        let root = try TestAuthority(commonName: "Größe Root")
        let identity = try root.issue(
            CertificateOptions(
                commonName: "server", hosts: ["example.test", "*.example.test", "10.0.0.1", "::1"],
                alternativeNames: [.email("a@example.test"), .uri("https://example.test/x")], serialNumber: 0xAB_CDEF))
        let certificate = try Certificate(pem: identity.certificatePEM)
        #expect(certificate.der == identity.certificateDER)
        #expect(try Certificate(pem: certificate.pem) == certificate)
        #expect(certificate.subject == "CN=server,O=Test Certificates")
        #expect(certificate.issuer == "CN=Größe Root,O=Test Certificates")
        #expect(certificate.serialNumber == "ABCDEF")
        #expect(certificate.notBefore < Date() && certificate.notAfter > Date(timeIntervalSinceNow: 3600))
        #expect(
            certificate.names.prefix(4) == [
                .dns("example.test"), .dns("*.example.test"), .address("10.0.0.1"), .address("::1"),
            ])
        #expect(certificate.names.dropFirst(4) == [.email("a@example.test"), .uri("https://example.test/x")])
        #expect(certificate.keyType == "EC P-256" && certificate.signatureAlgorithm == "ecdsa-with-SHA256")
        #expect(certificate.publicKeyHash.digest == identity.publicKeySHA256)
        #expect(certificate.fingerprint.count == 64)
        #expect(!certificate.isAuthority && !certificate.isSelfIssued)
        let authority = try Certificate(root.certificate)
        #expect(authority.isAuthority && authority.isSelfIssued)
        #expect(certificate.description.hasPrefix("CN=server,O=Test Certificates, issued by CN=Größe Root,"))
        #expect("\(dump(of: certificate))".contains("CN=server"))
        #expect(certificate.isNamed("a.example.test") && certificate.isNamed("EXAMPLE.test."))
        #expect(certificate.isNamed("10.0.0.1") && certificate.isNamed("::1"))
        for host in ["server", "a.b.example.test", "10.0.0.2", "::2", ".example.test", "", "."] {
            #expect(!certificate.isNamed(host), "\(host)")
        }
    }

    private func dump(of certificate: Certificate) -> String {
        Mirror(reflecting: certificate).children.map { "\($0.value)" }.joined()
    }

    @Test(arguments: [
        (TestKey.p384, "EC P-384"), (.rsa(2048), "RSA 2048"), (.ed25519, "ED25519"),
    ]) func keyTypesAreNamed(_ key: TestKey, _ text: String) throws {
        #expect(try Certificate(TestIdentity.selfSigned(CertificateOptions(key: key)).certificate).keyType == text)
    }

    @Test func invalidCertificatesThrow() throws {
        let (one, two) = (try TestAuthority().certificate, try TestAuthority().certificate)
        #expect(try Certificate.all(pem: one.pem + two.pem).map(\.der) == [one.der, two.der])
        for wrong in ["", "x", one.pem + two.pem, String(one.pem.dropLast(60))] {
            #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate(pem: wrong) }
        }
        for wrong in [[], [0x30], Array(one.pem.utf8), one.der + [0]] as [[UInt8]] {
            #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate(der: wrong) }
        }
        #expect(try Set([Certificate(one), Certificate(one), Certificate(two)]).count == 2)
    }

    @Test func certificatesLoadFromDirectories() throws {
        let folder = try Folder()
        let certificates = try (0..<5).map { try TestAuthority(commonName: "\($0)").certificate }
        try folder.write("d.cer", certificates[0].der)
        try folder.write("c.crt", (certificates[1].pem + certificates[4].pem).utf8)
        try folder.write("b.DER", certificates[2].der)
        try folder.write("a.pem", certificates[3].pem.utf8)
        try folder.write("readme.txt", "no certificate".utf8)
        let all = try Certificate.all(directory: folder.path)
        #expect(all.map(\.der) == [3, 2, 1, 4, 0].map { certificates[$0].der })
        #expect(try PinnedCertificates(directory: folder.path).certificates == Set(all))
        #expect(try CustomRoots(directory: folder.path).roots == .only(all))
        #expect(try CustomRoots(file: "\(folder.path)/a.pem", addingToSystem: true).roots == .systemAnd([all[0]]))

        try folder.write("z.pem", "garbage".utf8)
        let broken = #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.all(directory: folder.path) }
        #expect(broken?.message.contains("z.pem") == true)
        let empty = try Folder()
        #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.all(directory: empty.path) }
        #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.all(directory: empty.path + "/no") }
        let missing = #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.all(file: empty.path + "/no") }
        #expect(missing?.message.contains("no such file") == true)
        #expect(throws: TrustFailure.InvalidPolicy.self) { try Certificate.all(file: empty.path) }
    }
}
