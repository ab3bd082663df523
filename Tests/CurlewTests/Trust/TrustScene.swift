// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// A root, an intermediate authority and a server certificate, and the peer that a client sees.
struct TrustScene {
    let root: TestAuthority
    let authority: TestAuthority
    let leaf: TestIdentity

    init(_ options: CertificateOptions = CertificateOptions(hosts: ["api.example.test"])) throws {
        root = try TestAuthority(commonName: "Scene Root")
        authority = try root.intermediate(commonName: "Scene Authority")
        leaf = try authority.issue(options)
    }

    var roots: TrustRoots { get throws { try .only([Certificate(root.certificate)]) } }

    func peer(_ host: String = "api.example.test", also more: [TestCertificate] = []) throws -> PeerIdentity {
        try PeerIdentity(host: host, certificates: (leaf.chain + more).map { try Certificate($0) })
    }
}

extension Certificate {
    init(_ certificate: TestCertificate) throws { try self.init(der: certificate.der) }
}

extension Certificate.PublicKeyHash {
    init(_ certificate: TestCertificate) throws { try self.init(sha256: certificate.publicKeySHA256) }

    /// A hash that belongs to no key.
    static let unknown = Certificate.PublicKeyHash(number: 255)

    init(number: UInt8) {
        do {
            try self.init(sha256: [UInt8](repeating: number, count: 32))
        } catch {
            preconditionFailure("32 bytes are a digest")
        }
    }
}

/// The rule that refuses a server; nil when it is accepted.
func refusal(_ trust: some TrustEvaluator, _ peer: PeerIdentity) -> TrustFailure.Rule? {
    do throws(TrustFailure) {
        try trust.prepare()
        try trust.judge(peer)
        return nil
    } catch {
        return error.rule
    }
}
