// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Testing

/// Tests of certificates, verified by OpenSSL.
@Suite(.timeLimit(.minutes(5)))
struct CertificateTests {
    private func verdict(_ identity: TestIdentity, _ root: TestAuthority) -> CInt {
        CurlewTestingTests.verdict(on: identity.chain, trusting: [root.certificate])
    }

    @Test(arguments: [
        (TestKey.p256, EVP_PKEY_EC, CInt(256)), (.p384, EVP_PKEY_EC, 384), (.rsa(2048), EVP_PKEY_RSA, 2048),
        (.ed25519, EVP_PKEY_ED25519, 256),
    ])
    func keysOfAllKindsAreIssued(key: TestKey, type: CInt, bits: CInt) throws {
        let root = try TestAuthority(key: key)
        let identity = try root.intermediate(CertificateOptions(key: key)).issue(CertificateOptions(key: key))
        for certificate in identity.chain + [root.certificate] {
            let facts = CertificateFacts(certificate)
            #expect(facts.keyType == type && facts.keyBits == bits)
        }
        #expect(Set((identity.chain + [root.certificate]).map(\.publicKeySHA256)).count == 3)
        #expect(verdict(identity, root) == X509_V_OK)
    }

    @Test func rsaKeysAreSharedByNumber() throws {
        let root = try TestAuthority()
        func key(_ key: TestKey) throws -> [UInt8] { try root.issue(CertificateOptions(key: key)).publicKeySHA256 }
        #expect(try key(.rsa(1024)) == key(.rsa(1024)))
        #expect(try key(.rsa(1024)) != key(.rsa(1024, number: 1)))
        #expect(throws: TestingError.self) { try key(.rsa(1)) }
    }

    @Test(arguments: [
        (SignatureDigest.sha256, NID_ecdsa_with_SHA256, X509_V_OK), (.sha384, NID_ecdsa_with_SHA384, X509_V_OK),
        (.sha512, NID_ecdsa_with_SHA512, X509_V_OK), (.sha1, NID_ecdsa_with_SHA1, X509_V_ERR_CA_MD_TOO_WEAK),
    ])
    func signaturesUseAllDigests(digest: SignatureDigest, signature: CInt, expected: CInt) throws {
        let root = try TestAuthority()
        let identity = try root.issue(CertificateOptions(digest: digest))
        #expect(CertificateFacts(identity.certificate).signature == signature)
        #expect(verdict(identity, root) == expected)
    }

    @Test func weakKeysAndSignaturesAreRejected() throws {
        let root = try TestAuthority(key: .rsa(2048))
        let small = try root.issue(CertificateOptions(key: .rsa(1024)))
        #expect(verdict(small, root) == X509_V_ERR_EE_KEY_TOO_SMALL)
        let old = try root.issue(CertificateOptions(digest: .md5))
        #expect(CertificateFacts(old.certificate).signature == NID_md5WithRSAEncryption)
        #expect(verdict(old, root) == X509_V_ERR_CA_MD_TOO_WEAK)
        let smallIssuer = try root.intermediate(CertificateOptions(key: .rsa(1024)))
        #expect(try verdict(smallIssuer.issue(), root) == X509_V_ERR_CA_KEY_TOO_SMALL)
    }

    @Test func leafUsagesAndExtensionsAreEncoded() throws {
        let root = try TestAuthority()
        func judge(_ options: CertificateOptions) throws -> CInt { try verdict(root.issue(options), root) }
        #expect(try judge(CertificateOptions(extendedKeyUsages: [.clientAuth])) == X509_V_ERR_INVALID_PURPOSE)
        #expect(try judge(CertificateOptions(extendedKeyUsages: [.codeSigning])) == X509_V_ERR_INVALID_PURPOSE)
        #expect(try judge(CertificateOptions(extendedKeyUsages: [.init("1.2.3.4")])) == X509_V_ERR_INVALID_PURPOSE)
        #expect(try judge(CertificateOptions(extendedKeyUsages: [.serverAuth])) == X509_V_OK)
        #expect(try judge(CertificateOptions(keyUsages: [.cRLSign])) == X509_V_ERR_INVALID_PURPOSE)
        let bare = try root.issue(CertificateOptions(basicConstraints: .absent, keyUsages: [], extendedKeyUsages: []))
        let facts = CertificateFacts(bare.certificate)
        #expect(!facts.saysWhetherAuthority && !facts.limitsKeyUsage && !facts.limitsPurposes)
        #expect(verdict(bare, root) == X509_V_OK)
        let odd = try root.issue(CertificateOptions(extensions: [.unknownCritical]))
        #expect(verdict(odd, root) == X509_V_ERR_UNHANDLED_CRITICAL_EXTENSION)
        #expect(try judge(CertificateOptions(extensions: [.init("1.2.3.4")])) == X509_V_OK)
        let stapled = CertificateFacts(try root.issue(CertificateOptions(mustStaple: true)).certificate)
        #expect(stapled.mustStaple && !facts.mustStaple)
        #expect(throws: TestingError.self) { try judge(CertificateOptions(extensions: [.init("no identifier")])) }
    }

    @Test func invalidIntermediateAuthoritiesAreRejected() throws {
        let root = try TestAuthority()
        func judge(_ options: CertificateOptions) throws -> CInt {
            try verdict(root.intermediate(options).issue(), root)
        }
        #expect(try judge(CertificateOptions()) == X509_V_OK)
        #expect(try judge(CertificateOptions(basicConstraints: .notAuthority)) == X509_V_ERR_INVALID_CA)
        #expect(try judge(CertificateOptions(basicConstraints: .absent, keyUsages: [])) == X509_V_ERR_INVALID_CA)
        #expect(try judge(CertificateOptions(keyUsages: [.digitalSignature])) == X509_V_ERR_INVALID_CA)
        #expect(try judge(CertificateOptions(extendedKeyUsages: [.clientAuth])) == X509_V_ERR_INVALID_PURPOSE)
        let byLeaf = try root.intermediate().issue().issue()
        #expect(byLeaf.chain.count == 3 && verdict(byLeaf, root) == X509_V_ERR_INVALID_CA)
        let shallow = try root.intermediate(CertificateOptions(pathLength: 0))
        #expect(CertificateFacts(shallow.certificate).pathLength == 0)
        #expect(try verdict(shallow.issue(), root) == X509_V_OK)
        #expect(try verdict(shallow.intermediate().issue(), root) == X509_V_ERR_PATH_LENGTH_EXCEEDED)
        #expect(
            CertificateFacts(try root.issue(CertificateOptions(basicConstraints: .authority)).certificate).isAuthority)
        let expired = try root.intermediate(CertificateOptions(validity: .expired))
        #expect(try verdict(expired.issue(), root) == X509_V_ERR_CERT_HAS_EXPIRED)
    }

    @Test func nameConstraintsAreEnforced() throws {
        let root = try TestAuthority()
        func judge(_ host: String, _ options: CertificateOptions) throws -> CInt {
            try verdict(root.intermediate(options).issue(hosts: [host]), root)
        }
        let named = CertificateOptions(permittedNames: [.dns("example.com")], excludedNames: [.dns("no.example.com")])
        #expect(try judge("a.example.com", named) == X509_V_OK)
        #expect(try judge("example.org", named) == X509_V_ERR_PERMITTED_VIOLATION)
        #expect(try judge("a.no.example.com", named) == X509_V_ERR_EXCLUDED_VIOLATION)
        let numbered = CertificateOptions(permittedNames: [.ip("127.0.0.0/255.0.0.0")])
        #expect(try judge("127.0.0.1", numbered) == X509_V_OK)
        #expect(try judge("10.0.0.1", numbered) == X509_V_ERR_PERMITTED_VIOLATION)
        #expect(throws: TestingError.self) { try judge("a", CertificateOptions(excludedNames: [.ip("127.0.0.1")])) }
    }

    @Test func alternativeNamesAreEncodedVerbatim() throws {
        let root = try TestAuthority()
        let identity = try root.issue(
            CertificateOptions(
                hosts: ["a.test", "::1"],
                alternativeNames: [
                    .dns("good.test\0.evil.test"), .dns("*.xn--bcher-kva.test"), .dns("a,DNS:b"), .ip("10.0.0.1"),
                    .email("a@b.test"), .uri("https://c.test/"),
                ],
                serialNumber: 0x1234))
        let facts = CertificateFacts(identity.certificate)
        #expect(facts.serialNumber == 0x1234)
        #expect(
            facts.names.map(\.kind) == [GEN_DNS, GEN_IPADD, GEN_DNS, GEN_DNS, GEN_DNS, GEN_IPADD, GEN_EMAIL, GEN_URI])
        let texts = [0, 2, 3, 4, 6, 7].map { String(decoding: facts.names[$0].value, as: UTF8.self) }
        #expect(
            texts == [
                "a.test", "good.test\0.evil.test", "*.xn--bcher-kva.test", "a,DNS:b", "a@b.test", "https://c.test/",
            ])
        #expect(facts.names[5].value == [10, 0, 0, 1] && facts.names[1].value.count == 16)
        #expect(CertificateFacts(root.certificate).names.isEmpty)
        #expect(CertificateFacts(try root.issue(CertificateOptions()).certificate).names.count == 3)
        #expect(throws: TestingError.self) { try root.issue(CertificateOptions(alternativeNames: [.ip("x")])) }
    }

    @Test func renewedAndCrossSignedCertificatesKeepTheKey() throws {
        let (root, other) = (try TestAuthority(), try TestAuthority(commonName: "Other Root"))
        let old = try root.issue()
        let new = try root.issue(CertificateOptions(privateKeyPEM: old.privateKeyPEM))
        #expect(new.publicKeySHA256 == old.publicKeySHA256 && new.certificateDER != old.certificateDER)

        let renewed = try root.renewed()
        #expect(renewed.publicKeySHA256 == root.publicKeySHA256 && renewed.certificateDER != root.certificateDER)
        #expect(verdict(old, renewed) == X509_V_OK && renewed.intermediates.isEmpty)
        let expired = try root.intermediate().renewed(validity: .expired)
        #expect(try verdict(expired.issue(), root) == X509_V_ERR_CERT_HAS_EXPIRED)
        #expect(expired.intermediates == [expired.certificate])

        let crossed = try root.crossSigned(by: other.intermediate())
        let identity = try crossed.issue()
        #expect(crossed.publicKeySHA256 == root.publicKeySHA256 && identity.intermediates.count == 2)
        #expect(verdict(identity, other) == X509_V_OK && verdict(identity, root) == X509_V_OK)
        #expect(verdict(old, other) == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY)
        #expect(verdict(old.serving(intermediates: crossed.intermediates), other) == X509_V_OK)
    }

    @Test func encryptedKeysAndPKCS12FilesOpenWithThePassphrase() throws {
        let identity = try TestAuthority().intermediate().issue()
        let pem = try identity.privateKeyPEM(passphrase: "open sesame")
        #expect(pem.hasPrefix("-----BEGIN ENCRYPTED PRIVATE KEY-----"))
        #expect(opensKey(pem, passphrase: "open sesame", of: identity.certificate))
        #expect(!opensKey(pem, passphrase: "wrong", of: identity.certificate))
        #expect(try !opensKey(pem, passphrase: "open sesame", of: TestIdentity.selfSigned().certificate))
        for passphrase in ["open sesame", ""] {
            let file = try identity.pkcs12(passphrase: passphrase)
            #expect(openPKCS12(file, passphrase: passphrase) == identity.chain.map(\.der))
            #expect(openPKCS12(file, passphrase: "wrong") == nil)
        }
    }
}
