// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewTesting
import Testing

/// Tests of revocation lists and OCSP responses, verified by OpenSSL.
@Suite(.timeLimit(.minutes(5)))
struct RevocationTests {
    @Test(arguments: [TestKey.p256, .rsa(2048), .ed25519])
    func revocationListsGetTheExpectedVerdicts(key: TestKey) throws {
        let root = try TestAuthority(key: key)
        let (good, bad) = (try root.issue(), try root.issue())
        func judge(_ identity: TestIdentity, _ lists: TestRevocationList...) -> CInt {
            verdict(on: identity.chain, trusting: [root.certificate], lists: lists)
        }
        let list = try root.revocationList(revoking: [bad.certificate])
        #expect(judge(good, list) == X509_V_OK && judge(bad, list) == X509_V_ERR_CERT_REVOKED)
        #expect(list.pem.hasPrefix("-----BEGIN X509 CRL-----"))
        #expect(try judge(bad, root.revocationList()) == X509_V_OK)
        #expect(try judge(good, root.revocationList(nextUpdate: nil)) == X509_V_OK)
        let old = try root.revocationList(thisUpdate: .seconds(-7200), nextUpdate: .seconds(-3600))
        #expect(judge(good, old) == X509_V_ERR_CRL_HAS_EXPIRED)
        let early = try root.revocationList(thisUpdate: .seconds(3600))
        #expect(judge(good, early) == X509_V_ERR_CRL_NOT_YET_VALID)
        let forged = try root.revocationList(signer: .forger)
        #expect(judge(good, forged) == X509_V_ERR_CRL_SIGNATURE_FAILURE)
        let foreign = try TestAuthority(commonName: "Other").revocationList()
        #expect(judge(good, foreign) == X509_V_ERR_UNABLE_TO_GET_CRL)
    }

    @Test(arguments: [TestKey.p256, .rsa(2048), .ed25519])
    func ocspResponsesGetTheExpectedVerdicts(key: TestKey) throws {
        let issuer = try TestAuthority().intermediate(CertificateOptions(key: key))
        let certificate = try issuer.issue().certificate
        func judge(_ response: [UInt8]) -> OCSPVerdict {
            verdict(onResponse: response, for: certificate, issuer: issuer.certificate)
        }
        #expect(try judge(issuer.ocspResponse(for: certificate)) == .says(V_OCSP_CERTSTATUS_GOOD))
        let revoked = try issuer.ocspResponse(for: certificate, status: .revoked)
        #expect(judge(revoked) == .says(V_OCSP_CERTSTATUS_REVOKED))
        let unknown = try issuer.ocspResponse(for: certificate, status: .unknown)
        #expect(judge(unknown) == .says(V_OCSP_CERTSTATUS_UNKNOWN))
        #expect(try judge(issuer.ocspResponse(for: issuer.issue().certificate)) == .otherCertificate)
        #expect(try judge(TestAuthority().ocspResponse(for: certificate)) == .notSigned)
        #expect(judge(TestAuthority.ocspTryLater) == .refused(OCSP_RESPONSE_STATUS_TRYLATER))
        #expect(judge([1, 2, 3]) == .unreadable)
    }

    @Test func ocspResponsesHaveValidityPeriods() throws {
        let issuer = try TestAuthority()
        let certificate = try issuer.issue().certificate
        func judge(_ thisUpdate: Duration, _ nextUpdate: Duration?) throws -> OCSPVerdict {
            let response = try issuer.ocspResponse(for: certificate, thisUpdate: thisUpdate, nextUpdate: nextUpdate)
            return verdict(onResponse: response, for: certificate, issuer: issuer.certificate)
        }
        #expect(try judge(.seconds(-7200), .seconds(-3600)) == .outOfDate)
        #expect(try judge(.seconds(3600), .seconds(7200)) == .outOfDate)
        #expect(try judge(.seconds(-7200), nil) == .says(V_OCSP_CERTSTATUS_GOOD))
    }

    @Test(arguments: [
        (TestAuthority.OCSPSigner.issuer, OCSPVerdict.says(V_OCSP_CERTSTATUS_GOOD)),
        (.delegate, .says(V_OCSP_CERTSTATUS_GOOD)), (.delegateWithoutUsage, .notSigned), (.stranger, .notSigned),
        (.forger, .notSigned),
    ])
    func ocspResponseSignersDecideTheVerdict(signer: TestAuthority.OCSPSigner, expected: OCSPVerdict) throws {
        let issuer = try TestAuthority()
        let certificate = try issuer.issue().certificate
        let response = try issuer.ocspResponse(for: certificate, signer: signer)
        #expect(verdict(onResponse: response, for: certificate, issuer: issuer.certificate) == expected)
    }
}
