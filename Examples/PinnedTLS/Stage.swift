// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// A way for a server to show who it is.
struct Shown {
    let name: String
    /// What each policy has to say to it: `yes`, or the rule that refuses it.
    let verdicts: [String]
    let identity: TestIdentity
    /// The OCSP response that comes with it.
    let staple: [UInt8]?

    init(_ name: String, _ verdicts: String, _ identity: TestIdentity, staple: [UInt8]?) {
        self.name = name
        self.verdicts = verdicts.split(separator: " ").map(String.init)
        self.identity = identity
        self.staple = staple
    }
}

/// An authority, the certificates of its server, and the policies that a client of it may have.
struct Stage {
    /// A policy and its name in the table.
    struct Policy {
        var name: String
        var trust: any TrustEvaluator
    }

    let root: TestAuthority
    let issuer: TestAuthority
    /// What the server shows, and clients have pinned.
    let ours: TestIdentity
    /// Has the key that is kept in reserve.
    let spare: TestIdentity

    init() throws {
        root = try TestAuthority(commonName: "Our Root")
        issuer = try root.intermediate(commonName: "Our Issuer")
        ours = try issuer.issue()
        spare = try issuer.issue()
    }

    /// From the least demanding to the most, beside those that need no authority.
    func policies() throws -> [Policy] {
        let roots = TrustRoots.only([try Certificate(der: root.certificateDER)])
        let pinned = [try Certificate(der: ours.certificateDER)]
        let backup = try PublicKeyHash(sha256: spare.publicKeySHA256)
        let keys = [pinned[0].publicKeyHash]
        return [
            Policy(name: "root", trust: CustomRoots(roots)),
            Policy(name: "root, key", trust: try PinnedPublicKeys(keys, backup: backup, chain: .required(roots))),
            Policy(name: "root, cert", trust: try PinnedCertificates(pinned, anchors: .roots(roots))),
            Policy(name: "root, OCSP", trust: CustomRoots(roots).checkingRevocation(staple: .required)),
            Policy(name: "key alone", trust: try PinnedPublicKeys(keys, backup: backup, chain: .notRequired)),
            Policy(name: "cert alone", trust: try PinnedCertificates(pinned, anchors: .pinsOnly)),
        ]
    }
}
