// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// The policies of a scenario, by the columns of the table.
struct TrustScenarioPolicies {
    private let roots: TrustRoots
    private let keys: [Certificate.PublicKeyHash]
    private let certificates: [Certificate]
    private let lists: [Certificate.RevocationList]

    init(_ chain: TrustScenarioChain) throws {
        let pins = chain.scenario.pins
        roots = .only(try chain.roots().map { try Certificate(der: $0.der) })
        keys = try (pins?.keys ?? []).map { id in
            if id == "unknown" { return try Certificate.PublicKeyHash(sha256: [UInt8](repeating: 0, count: 32)) }
            return try Certificate.PublicKeyHash(sha256: chain.certificate(id).publicKeySHA256)
        }
        certificates = try (pins?.certificates ?? []).map { try Certificate(der: chain.certificate($0).der) }
        lists = try chain.lists.map { try Certificate.RevocationList(der: $0.der) }
    }

    /// An evaluator that knows no root of the scenario, like the system's; the table has no column for it.
    static func knowingNobody() throws -> CustomRoots { try stranger.get() }
    private static let stranger = Result { try CustomRoots(pem: TestAuthority().certificatePEM) }

    func evaluator(_ column: TrustColumn) throws -> any TrustEvaluator {
        switch column {
        case .roots: return CustomRoots(roots)
        case .insecure: return InsecureTrust(reason: "a column of the table")
        case .pinnedKeys: return try pinnedKeys(.required(roots))
        case .pinnedKeysNoChain: return try pinnedKeys(.notRequired)
        case .pinnedCertificates: return try PinnedCertificates(certificates, anchors: .roots(roots))
        case .pinnedCertificatesOnly: return try PinnedCertificates(certificates, anchors: .pinsOnly)
        case .policyNone, .policyNoneNoDomain, .policyPublicKey, .policyCertificate, .policyPublicKeyAllowInvalid,
            .policyCertificateAllowInvalid:
            return try policy(column)
        case .revocationCRL, .revocationCRLChain, .revocationOCSPIfPresent, .revocationOCSPRequired:
            return revocation(column)
        case .rootsAuthorities: return CustomRoots(roots).applying(.authoritiesAsServers)
        case .rootsStrict: return CustomRoots(roots).applying(.strict)
        }
    }

    private func pinnedKeys(_ chain: PinnedPublicKeys.Chain) throws -> PinnedPublicKeys {
        try PinnedPublicKeys(keys, withoutBackup: "a row of the table", chain: chain)
    }

    private func policy(_ column: TrustColumn) throws -> SecurityPolicyTrust {
        let mode: SecurityPolicyTrust.PinningMode =
            switch column {
            case .policyPublicKey, .policyPublicKeyAllowInvalid: .publicKey
            case .policyCertificate, .policyCertificateAllowInvalid: .certificate
            default: .none
            }
        return try SecurityPolicyTrust(
            pinningMode: mode,
            allowInvalidCertificates: [.policyPublicKeyAllowInvalid, .policyCertificateAllowInvalid].contains(column),
            validatesDomainName: column != .policyNoneNoDomain, certificates: mode == .none ? [] : certificates,
            roots: roots)
    }

    private func revocation(_ column: TrustColumn) -> Revocation<CustomRoots> {
        let base = CustomRoots(roots)
        return switch column {
        case .revocationCRL: base.checkingRevocation(lists: lists, scope: .leaf)
        case .revocationCRLChain: base.checkingRevocation(lists: lists, scope: .chain)
        case .revocationOCSPIfPresent: base.checkingRevocation(ocspResponse: .ifPresent)
        default: base.checkingRevocation(ocspResponse: .required)
        }
    }
}
