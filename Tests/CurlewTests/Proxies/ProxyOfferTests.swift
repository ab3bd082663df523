// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import Curlew

/// The schemes in the error of a proxy that requires credentials.
@Suite(.timeLimit(.minutes(5)))
struct ProxyOfferTests {
    private static let advice =
        "Set a name and a password, with Proxy(url, .basic(name, password)) or in the URL of the variable."
    private static let relay =
        "Curlew supports only Basic, Digest and tokens in Proxy.fields; a local relay such as cntlm or px can add "
        + "Negotiate and NTLM."

    private static let digest =
        "Set a name and a password, with Proxy(url, .digest(name, password)), or with Proxy.Policy.environment for "
        + "the proxy of a variable."

    /// Returns the hints of several requests in one session to a proxy that responds with 407 and these challenges.
    private func hints(
        _ url: String, _ challenges: [String], _ credentials: Proxy.Credentials? = nil, count: Int = 1
    ) async throws -> [String?] {
        let mock = try MockProxy(.http) { _ in .status(407, challenges.map { "Proxy-Authenticate: \($0)" }) }
        let proxy = try Proxy(mock.url, credentials)
        let session = Session { $0.proxy = .always(proxy) }
        var hints: [String?] = []
        for _ in 0..<count {
            let error = try await networkError { try await session.data(for: Request(url)) }
            #expect(error.kind == .proxyAuthenticationRequired)
            hints.append(error.hint)
        }
        return hints
    }

    @Test(arguments: [
        ([], advice), (["Basic realm=\"a, b\", NTLM"], "The proxy offers Basic, NTLM. \(advice)"),
        (["Negotiate", "NTLM"], "The proxy offers Negotiate, NTLM. \(relay)"),
        (["Digest realm=\"p\", nonce=\"n\"", "digest realm=\"q\", nonce=\"m\""], "The proxy offers Digest. \(digest)"),
        (["A1, A2, A3, A4, A5, A6, A7, A8, Basic"], "The proxy offers A1, A2, A3, A4, A5, A6, A7, A8. \(advice)"),
    ])
    func schemesOfAForwardedRequestAreListed(_ challenges: [String], _ hint: String) async throws {
        #expect(try await hints("http://server.test/", challenges) == [hint])
    }

    @Test(arguments: [
        (Proxy.Credentials.basic("anna", "x"), "Digest realm=\"p\", nonce=\"n\"", "Use Proxy.Credentials.digest"),
        (.digest("anna", "x"), "Basic realm=\"p\"", "Use Proxy.Credentials.basic"),
        (.basic("anna", "x"), "Basic realm=\"p\"", "Check the name and the password"),
    ])
    func hintFitsTheCredentials(_ credentials: Proxy.Credentials, _ challenge: String, _ words: String) async throws {
        let hint = try await hints("http://server.test/", [challenge], credentials)[0]
        #expect(hint?.contains(words) == true, "\(hint ?? "")")
    }

    @Test func schemesOfATunnelAreListedEachTime() async throws {
        let challenges = ["Digest realm=\"p\", nonce=\"n\"", "Basic realm=\"p\"", "Other"]
        let hints = try await hints("https://server.test/", challenges, count: 3)
        let start = "The proxy offers Basic, Digest. \(Self.advice)"
        #expect(hints.allSatisfy { $0?.hasPrefix(start) == true }, "\(hints)")
    }

    @Test func tunnelWithoutASupportedSchemeNeedsARelay() async throws {
        let hints = try await hints("https://server.test/", ["NTLM", "Negotiate"])
        // A newer libcurl may lack these schemes, and then does not report them.
        let isListed = hints[0]?.hasPrefix("The proxy offers Negotiate, NTLM. \(Self.relay)") == true
        #expect(isListed || LibcurlInUse.isNewer, "\(hints)")
    }

    @Test(arguments: ["http://server.test/", "https://server.test/"])
    func schemesFollowARefusedPassword(_ url: String) async throws {
        let hints = try await hints(url, ["Basic realm=\"p\""], .basic("anna", "wrong"))
        #expect(hints[0]?.hasPrefix("The proxy offers Basic. Check the name and the password") == true, "\(hints)")
    }
}
