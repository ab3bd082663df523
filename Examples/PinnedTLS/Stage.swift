// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// The identity and OCSP response that a server presents.
struct ServerCase {
    let name: String
    /// The expected verdict of each policy: `yes`, or the rule that refuses the server.
    let verdicts: [String]
    let identity: TestIdentity
    /// The stapled OCSP response.
    let ocspResponse: [UInt8]?

    init(_ name: String, _ verdicts: String, _ identity: TestIdentity, ocspResponse: [UInt8]?) {
        self.name = name
        self.verdicts = verdicts.split(separator: " ").map(String.init)
        self.identity = identity
        self.ocspResponse = ocspResponse
    }
}

/// An authority, the certificates of its server, and possible trust policies of a client.
struct Stage {
    /// A policy and its name in the table.
    struct Policy {
        var name: String
        var trust: any TrustEvaluator
    }

    let root: TestAuthority
    let issuer: TestAuthority
    /// The identity of the server, whose key clients have pinned.
    let ours: TestIdentity
    /// The identity with the backup key.
    let spare: TestIdentity

    init() throws {
        root = try TestAuthority(commonName: "Our Root")
        issuer = try root.intermediate(commonName: "Our Issuer")
        ours = try issuer.issue()
        spare = try issuer.issue()
    }

    /// Returns the policies from the least to the most strict, followed by the policies that need no authority.
    func policies() throws -> [Policy] {
        let roots = TrustRoots.only([try Certificate(der: root.certificateDER)])
        let pinned = [try Certificate(der: ours.certificateDER)]
        let backup = try Certificate.PublicKeyHash(sha256: spare.publicKeySHA256)
        let keys = [pinned[0].publicKeyHash]
        return [
            Policy(name: "root", trust: CustomRoots(roots)),
            Policy(name: "root, key", trust: try PinnedPublicKeys(keys, backup: backup, chain: .required(roots))),
            Policy(name: "root, cert", trust: try PinnedCertificates(pinned, anchors: .roots(roots))),
            Policy(name: "root, OCSP", trust: CustomRoots(roots).checkingRevocation(ocspResponse: .required)),
            Policy(name: "key alone", trust: try PinnedPublicKeys(keys, backup: backup, chain: .notRequired)),
            Policy(name: "cert alone", trust: try PinnedCertificates(pinned, anchors: .pinsOnly)),
        ]
    }
}
