// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewShims
import CurlewTesting

@testable import Curlew

/// A server with Digest authentication and configurable rules that checks the credentials with independent code.
final class DigestServer: Sendable {
    struct Rules: Sendable {
        var user = "anna"
        var password = "open sesame"
        var realm = "staff"
        /// The parameter of the challenge; nil leaves it out.
        var algorithm: String? = "SHA-256"
        /// The parameter of the challenge; nil leaves it out.
        var qop: String? = "auth"
        var hashesUser = false
        var isUTF8 = false
        /// The number of requests that may use a nonce.
        var uses = Int.max
        /// Whether the challenge after an exhausted nonce says `stale=true`.
        var saysStale = true
        /// Whether each successful response has a `nextnonce`.
        var givesNext = false
        /// Whether all challenges have the same nonce.
        var keepsNonce = false
        var domain: String?
        /// The text before the Digest challenge in the field.
        var before = ""
    }

    private struct State {
        var nonces: [String: Set<String>] = [:]
        var issued = 0
        var complaints: [String] = []
    }

    let server: MockServer
    private let judge: Judge

    init(_ rules: Rules = Rules(), tls: TestIdentity? = nil) throws {
        let judge = Judge(rules)
        self.judge = judge
        server = try MockServer(tls: tls) { judge.answer($0) }
    }

    func url(_ path: String = "/") -> String { server.url(path) }

    /// The reasons of refusals, in order, without exhausted and unknown nonces.
    var complaints: [String] { judge.state.withLock { $0.complaints } }

    /// The `Authorization` field of each request.
    var proofs: [String?] { server.requests.map { $0.field("Authorization") } }

    /// The parameters of each Digest `Authorization` field.
    var values: [[String: String]] {
        proofs.compactMap(\.self).map { ChallengeParser.parameters(in: String($0.dropFirst("Digest ".count))) }
    }

    /// Forgets all nonces, as a restarted server does.
    func forget() { judge.state.withLock { $0.nonces = [:] } }

    private final class Judge: Sendable {
        let rules: Rules
        let state = Lock(State())

        init(_ rules: Rules) { self.rules = rules }

        func answer(_ request: RecordedRequest) -> MockResponse {
            guard let field = request.field("Authorization") else { return refuse(isStale: false) }
            guard field.hasPrefix("Digest ") else { return complain("not Digest") }
            let values = Self.values(of: String(field.dropFirst(7)))
            if let complaint = complaint(values, request) { return complain(complaint) }
            let (isUsable, isNew) = state.withLock { state -> (Bool, Bool) in
                guard let nonce = values["nonce"], let used = state.nonces[nonce], used.count < rules.uses else {
                    return (false, true)
                }
                return (true, state.nonces[nonce]?.insert(values["nc"] ?? "\(used.count)").inserted == true)
            }
            guard isUsable else { return refuse(isStale: rules.saysStale) }
            guard isNew else { return complain("a count that was used before") }
            let welcome = MockResponse.text("welcome")
            return rules.givesNext ? welcome.field("Authentication-Info", "nextnonce=\"\(makeNonce())\"") : welcome
        }

        private func complain(_ complaint: String) -> MockResponse {
            state.withLock { $0.complaints.append(complaint) }
            return refuse(isStale: false)
        }

        private func makeNonce() -> String {
            state.withLock { state in
                if !rules.keepsNonce || state.issued == 0 { state.issued += 1 }
                let nonce = "nonce=\(state.issued)"
                if state.nonces[nonce] == nil { state.nonces[nonce] = [] }
                return nonce
            }
        }

        private func refuse(isStale: Bool) -> MockResponse {
            var text = "\(rules.before)Digest realm=\"\(rules.realm)\", nonce=\"\(makeNonce())\", opaque=\"o\\\"p\""
            if let algorithm = rules.algorithm { text += ", algorithm=\(algorithm)" }
            if let qop = rules.qop { text += ", qop=\"\(qop)\"" }
            if rules.hashesUser { text += ", userhash=true" }
            if rules.isUTF8 { text += ", charset=UTF-8" }
            if let domain = rules.domain { text += ", domain=\"\(domain)\"" }
            if isStale { text += ", stale=true" }
            return .text("who are you?", status: 401).field("WWW-Authenticate", text)
        }

        /// Returns the name of the first wrong parameter, or nil; the nonce is not checked.
        private func complaint(_ values: [String: String], _ request: RecordedRequest) -> String? {
            guard values["realm"] == rules.realm else { return "realm" }
            guard values["opaque"] == "o\"p" else { return "opaque" }
            guard values["uri"] == request.target else { return "uri \(values["uri"] ?? "") for \(request.target)" }
            guard values["algorithm"] == rules.algorithm else { return "algorithm" }
            guard user(of: values) else { return "user" }
            let first = "\(rules.user):\(rules.realm):\(rules.password)"
            var secret = hash(first)
            if rules.algorithm?.lowercased().hasSuffix("-sess") == true {
                secret = hash("\(secret):\(values["nonce"] ?? ""):\(values["cnonce"] ?? "")")
            }
            let quality = values["qop"]
            var second = "\(request.method):\(request.target)"
            if quality == "auth-int" { second += ":" + hash(request.body) }
            let expected: String
            if let offered = rules.qop {
                guard let quality, offered.contains(quality), values["nc"]?.count == 8, values["cnonce"] != nil else {
                    return "qop"
                }
                let middle = "\(values["nonce"]!):\(values["nc"]!):\(values["cnonce"]!):\(quality)"
                expected = hash("\(secret):\(middle):\(hash(second))")
            } else {
                guard quality == nil, values["nc"] == nil else { return "qop unasked" }
                expected = hash("\(secret):\(values["nonce"]!):\(hash(second))")
            }
            return values["response"] == expected ? nil : "response"
        }

        private func user(of values: [String: String]) -> Bool {
            if rules.hashesUser {
                return values["userhash"] == "true" && values["username"] == hash("\(rules.user):\(rules.realm)")
            }
            if let extended = values["username*"] {
                return extended == "UTF-8''J%C3%A4s%C3%B8n%20Doe" && rules.user == "J\u{E4}s\u{F8}n Doe"
            }
            return values["username"] == rules.user
        }

        /// Hashes with OpenSSL functions that the library does not call.
        private func hash(_ bytes: [UInt8]) -> String {
            let name = (rules.algorithm ?? "MD5").uppercased()
            let method =
                name.hasPrefix("MD5") ? EVP_md5() : name.hasPrefix("SHA-256") ? EVP_sha256() : EVP_sha512_256()
            var (digest, count) = ([UInt8](repeating: 0, count: 64), UInt32(0))
            EVP_Digest(bytes, bytes.count, &digest, &count, method, nil)
            return digest.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }

        private func hash(_ text: String) -> String { hash(Array(text.utf8)) }

        /// Parses `name=value` and `name="value"`, separated by commas.
        private static func values(of text: String) -> [String: String] {
            var (values, name, value): ([String: String], String, String) = ([:], "", "")
            var (isValue, isQuoted, isEscaped) = (false, false, false)
            for character in text + "," {
                if isEscaped {
                    value.append(character)
                    isEscaped = false
                } else if isQuoted {
                    if character == "\\" {
                        isEscaped = true
                    } else if character == "\"" {
                        isQuoted = false
                    } else {
                        value.append(character)
                    }
                } else if character == "," {
                    values[name] = value
                    (name, value, isValue) = ("", "", false)
                } else if character == "\"" {
                    isQuoted = true
                } else if !isValue, character == "=" {
                    isValue = true
                } else if isValue {
                    value.append(character)
                } else if character != " " {
                    name.append(character)
                }
            }
            return values
        }
    }
}
