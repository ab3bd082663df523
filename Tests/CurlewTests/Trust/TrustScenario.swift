// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

/// One scenario of trust-scenarios.json: certificates, the list that a server sends, and the verdict of each policy.
///
/// The file describes its members at its top.
struct TrustScenario: Decodable, Sendable {
    let id: String
    let title: String
    let host: String
    let certificates: [String: Recipe]
    /// The certificates that the server sends, the leaf first.
    let served: [String]
    let roots: [String]
    let pins: Pins?
    let crls: [List]?
    let ocspResponse: OCSPResponse?
    let server: Server?
    let expect: [TrustColumn: Expectation]
    /// The section of an RFC, or a row of the feature list.
    let follows: String
    let note: String?
    /// Why `openssl verify` has another verdict on the roots.
    let differs: String?

    /// The pins, by certificate id; a key may also be "unknown".
    struct Pins: Decodable, Sendable {
        let keys: [String]
        let certificates: [String]
    }

    /// A revocation list, with times in hours from now.
    struct List: Decodable, Sendable {
        let issuer: String
        let revokes: [String]
        let thisUpdate: Int
        let nextUpdate: Int
        let signedBy: String?
    }

    /// An OCSP response, with times in hours from now.
    struct OCSPResponse: Decodable, Sendable {
        let issuer: String
        let `for`: String
        let status: String
        let thisUpdate: Int
        let nextUpdate: Int
        let signer: String
    }

    /// The TLS settings of the server.
    struct Server: Decodable, Sendable {
        let minimum: String?
        let maximum: String?
        let securityLevel: Int?
        let clientCertificate: String?
    }

    /// Whether the host is an address.
    var isAddress: Bool { host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." } }
}

/// The policies that judge a scenario.
enum TrustColumn: String, CaseIterable, Decodable, CodingKeyRepresentable, Sendable {
    case roots, insecure
    case pinnedKeys, pinnedKeysNoChain, pinnedCertificates, pinnedCertificatesOnly
    case policyNone, policyNoneNoDomain, policyPublicKey, policyCertificate
    case policyPublicKeyAllowInvalid, policyCertificateAllowInvalid
    case revocationCRL, revocationCRLChain, revocationOCSPIfPresent, revocationOCSPRequired
    case rootsAuthorities, rootsStrict

    /// The policies that need only roots; every row has them.
    static let common: Set<TrustColumn> = [.roots, .insecure, .policyNone, .policyNoneNoDomain]
}

extension TrustScenario {
    /// The expected verdict of a policy.
    enum Expectation: Decodable, Sendable, Hashable {
        case accept
        /// One of these rules refuses the server.
        case refuse(Set<String>)
        /// The handshake fails regardless of the policy.
        case failInTLS

        private enum Key: CodingKey {
            case refuse, fail
        }

        private static let rules: Set<String> = ["chain", "validity", "hostName", "pin", "certificate", "revocation"]

        init(from decoder: any Decoder) throws {
            if let word = try? decoder.singleValueContainer().decode(String.self) {
                guard word == "accept" else { throw TrustScenarioFailure("“\(word)” is not a verdict") }
                self = .accept
                return
            }
            let container = try decoder.container(keyedBy: Key.self)
            if let layer = try container.decodeIfPresent(String.self, forKey: .fail) {
                guard layer == "tls" else { throw TrustScenarioFailure("“\(layer)” is not a layer that can fail") }
                self = .failInTLS
                return
            }
            let one = try? container.decode(String.self, forKey: .refuse)
            let rules = try one.map { [$0] } ?? container.decode(Set<String>.self, forKey: .refuse)
            guard !rules.isEmpty, rules.isSubset(of: Self.rules) else {
                throw TrustScenarioFailure("\(rules) are not known rules")
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

/// The verdict of a policy.
enum TrustVerdict: Sendable {
    case accepted
    case refused(TrustFailure.Rule, String)
    case failedInTLS
    /// An unexpected outcome.
    case strange(String)
}

/// The reason why a scenario cannot run.
struct TrustScenarioFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

extension TrustScenario: CustomTestStringConvertible {
    var testDescription: String { id }

    private struct Table: Decodable {
        let scenarios: [TrustScenario]
    }

    /// The URL of the table.
    static let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "trust-scenarios.json")

    static let table = Result { try JSONDecoder().decode(Table.self, from: Data(contentsOf: file)).scenarios }

    /// All rows; empty if the table is unreadable, which a separate test reports.
    static var all: [TrustScenario] { (try? table.get()) ?? [] }
}
