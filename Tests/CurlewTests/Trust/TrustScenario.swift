// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

/// One situation of trust-scenarios.json: certificates, what a server shows of them, and what each policy says of that.
///
/// The file describes its members itself, at its top.
struct TrustScenario: Decodable, Sendable {
    let id: String
    let title: String
    let host: String
    let certificates: [String: Recipe]
    /// What the server sends, its own certificate first.
    let served: [String]
    let roots: [String]
    let pins: Pins?
    let crls: [List]?
    let staple: Staple?
    let server: Server?
    let expect: [TrustColumn: Expectation]
    /// The section of an RFC, or a row of ours.
    let follows: String
    let note: String?
    /// Why OpenSSL's own program says otherwise of the roots.
    let differs: String?

    /// What is pinned, by certificate; a key may also be "unknown".
    struct Pins: Decodable, Sendable {
        let keys: [String]
        let certificates: [String]
    }

    /// A revocation list, its times in hours from now.
    struct List: Decodable, Sendable {
        let issuer: String
        let revokes: [String]
        let thisUpdate: Int
        let nextUpdate: Int
        let signedBy: String?
    }

    /// An OCSP response, its times in hours from now.
    struct Staple: Decodable, Sendable {
        let issuer: String
        let `for`: String
        let status: String
        let thisUpdate: Int
        let nextUpdate: Int
        let signer: String
    }

    /// How the server speaks TLS.
    struct Server: Decodable, Sendable {
        let minimum: String?
        let maximum: String?
        let securityLevel: Int?
        let clientCertificate: String?
    }

    /// Whether the host is an address.
    var isAddress: Bool { host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." } }
}

/// The policies that a situation is shown to.
enum TrustColumn: String, CaseIterable, Decodable, CodingKeyRepresentable, Sendable {
    case roots, insecure
    case pinnedKeys, pinnedKeysNoChain, pinnedCertificates, pinnedCertificatesOnly
    case policyNone, policyNoneNoDomain, policyPublicKey, policyCertificate
    case policyPublicKeyAllowInvalid, policyCertificateAllowInvalid
    case revocationCRL, revocationCRLChain, revocationStapleSoft, revocationStapleRequired
    case rootsAuthorities, rootsStrict

    /// Those that say something of roots alone, which every row has.
    static let common: Set<TrustColumn> = [.roots, .insecure, .policyNone, .policyNoneNoDomain]
}

extension TrustScenario {
    /// What a policy has to say.
    enum Expectation: Decodable, Sendable, Hashable {
        case accept
        /// One of these rules refuses.
        case refuse(Set<String>)
        /// TLS breaks whatever the policy says.
        case failInTLS

        private enum Key: CodingKey {
            case refuse, fail
        }

        private static let rules: Set<String> = ["chain", "validity", "hostName", "pin", "certificate", "revocation"]

        init(from decoder: any Decoder) throws {
            if let word = try? decoder.singleValueContainer().decode(String.self) {
                guard word == "accept" else { throw TrustScenarioFailure("“\(word)” is no verdict") }
                self = .accept
                return
            }
            let container = try decoder.container(keyedBy: Key.self)
            if let layer = try container.decodeIfPresent(String.self, forKey: .fail) {
                guard layer == "tls" else { throw TrustScenarioFailure("“\(layer)” does not fail") }
                self = .failInTLS
                return
            }
            let one = try? container.decode(String.self, forKey: .refuse)
            let rules = try one.map { [$0] } ?? container.decode(Set<String>.self, forKey: .refuse)
            guard !rules.isEmpty, rules.isSubset(of: Self.rules) else {
                throw TrustScenarioFailure("\(rules) are no rules")
            }
            self = .refuse(rules)
        }

        func allows(_ verdict: TrustVerdict) -> Bool {
            switch (self, verdict) {
            case (.accept, .accepted), (.failInTLS, .failedInTLS): true
            case (.refuse(let rules), .refused(let rule, _)): rules.contains(rule.rawValue)
            default: false
            }
        }
    }
}

/// What a policy has said.
enum TrustVerdict: Sendable {
    case accepted
    case refused(TrustFailure.Rule, String)
    case failedInTLS
    /// Something that no situation ends with.
    case strange(String)
}

/// Why a situation cannot be played.
struct TrustScenarioFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension TrustScenario: CustomTestStringConvertible {
    var testDescription: String { id }

    private struct Table: Decodable {
        let scenarios: [TrustScenario]
    }

    /// Where the table is.
    static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "trust-scenarios.json")

    static let table = Result { try JSONDecoder().decode(Table.self, from: Data(contentsOf: file)).scenarios }

    /// All rows; none when the table cannot be read, which a test of it says.
    static var all: [TrustScenario] { (try? table.get()) ?? [] }
}
