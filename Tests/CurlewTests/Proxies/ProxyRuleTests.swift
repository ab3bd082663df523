// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// The pure rules: URLs of proxies, lists of exceptions, variables of the environment.
@Suite struct ProxyRuleTests {
    // MARK: URLs

    @Test(arguments: [
        ("http://proxy.test:3128", "http://proxy.test:3128"), ("proxy.test:3128", "http://proxy.test:3128"),
        ("PROXY.test", "http://proxy.test:1080"), ("https://proxy.test", "https://proxy.test:443"),
        ("https://proxy.test:8443/", "https://proxy.test:8443"), ("socks://10.0.0.1", "socks4://10.0.0.1:1080"),
        ("socks4a://proxy.test", "socks4a://proxy.test:1080"), ("SOCKS5H://[::1]:9050", "socks5h://[::1]:9050"),
        ("socks5://proxy.test:1", "socks5://proxy.test:1"), ("[2001:DB8::1]", "http://[2001:db8::1]:1080"),
        ("http://m\u{FC}nchen.test:80", "http://xn--mnchen-3ya.test:80"),
        ("http://proxy.test:3128/", "http://proxy.test:3128"), ("http://proxy.test/a/b", "http://proxy.test:1080"),
        ("proxy.test:3128/?a=b:c#d", "http://proxy.test:3128"), ("https://proxy.test?x", "https://proxy.test:443"),
        ("http://proxy.test#x", "http://proxy.test:1080"), ("http://[::1]:80/x", "http://[::1]:80"),
        ("socks5://localhost/", "socks5://localhost:1080"),
        ("socks5://localhost?/a", "socks5://localhost:1080"), ("http://localhost/a", "http://localhost:1080"),
        ("socks5h://10.0.0.1/a", "socks5h://10.0.0.1:1080"),
    ])
    func urlsOfProxiesAreRead(_ written: String, _ url: String) throws {
        #expect(try Proxy(written).url == url)
    }

    @Test(arguments: [
        ("ftp://proxy.test", "ftp"), ("http://", "host"), ("", "host"), ("http://proxy.test:0", "port"),
        ("http://proxy.test:65536", "port"), ("http://proxy.test:80a", "port"), ("http://a:b:c", "host"),
        ("socks5h://localhost/run/a.sock", "Unix socket"), ("socks://LOCALHOST:1//", "Unix socket"),
        ("http:///path", "host"), ("http://u:pass/word@proxy.test", "percent"), ("http://[::1", "host"),
        ("http://u:4711/x@proxy.test:80", "percent"),
        ("http://[localhost]:80", "host"), ("http://u%zz:p@proxy.test", "percent"), ("http://pro xy:80", "host"),
        ("http://proxy.test?a@b", "percent"),
    ])
    func invalidURLsOfProxiesAreRefused(_ written: String, _ word: String) {
        let error = #expect(throws: NetworkError.self) { _ = try Proxy(written) }
        #expect(error?.requestFlaw == .configuration && error?.message.contains(word) == true)
    }

    @Test func credentialsInURLsAreDecodedAndNeverShown() throws {
        let proxy = try Proxy("http://an%20na:s%3Acret%40@proxy.test:3128")
        #expect(proxy.credentials == .basic("an na", "s:cret@"))
        var text = "\(proxy) \(proxy.credentials.map { "\($0)" } ?? "")"
        dump(proxy, to: &text)
        #expect(!text.contains("cret") && !text.contains("an na"))
        #expect(try Proxy("http://anna@proxy.test").credentials == .basic("anna", ""))
        #expect(try Proxy("http://anna:x@proxy.test", .digest("berta", "y")).credentials == .digest("berta", "y"))
        let error = #expect(throws: NetworkError.self) { _ = try Proxy("http://anna:secret@proxy.test:x") }
        #expect(error.map { !"\($0)".contains("secret") } == true)
    }

    // MARK: Exceptions

    @Test(arguments: [
        ("*", "a.test", true), ("example.test", "example.test", true), ("example.test", "www.example.test", true),
        ("example.test", "notexample.test", false), (".example.test", "example.test", true),
        (".example.test", "a.b.example.test", true), ("*.example.test", "www.example.test", true),
        ("EXAMPLE.test.", "example.test", true), ("example.test", "example.test.", true),
        ("a.test, b.test\tc.test", "b.test", true), ("a.test, b.test\tc.test", "c.test", true), ("", "a.test", false),
        ("a.test,*", "b.test", true), ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.70", false),
        ("10.0.0.0/8", "10.200.3.4", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.1.2.0/23", "10.1.3.255", true),
        ("10.1.2.0/23", "10.1.4.0", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "a.test", false),
        ("192.0.2.7/32", "192.0.2.7", true), ("10.0.0.0/33", "10.0.0.0", false), ("10.0.0.0/", "10.0.0.0", false),
        ("[::1]", "::1", true), ("::1", "::1", true), ("2001:db8::/32", "2001:db8:7::1", true),
        ("2001:db8::/32", "2001:db9::1", false), ("[2001:db8::]/32", "2001:db8::5", true),
        ("fe80::/10", "febf::1", true),
        ("fe80::/10", "fec0::1", false), ("0.7", "192.0.2.7", false), ("2.7", "192.0.2.7", false),
        ("m\u{FC}nchen.test", "www.xn--mnchen-3ya.test", true), ("exa mple", "mple", true),
        ("[localhost]", "localhost", false),
    ])
    func exceptionsFollowTheRulesOfCurl(_ list: String, _ host: String, _ isExcepted: Bool) {
        #expect((ProxyExceptions(list).entry(for: host, port: 443) != nil) == isExcepted)
    }

    @Test(arguments: [
        ("a.test:8080", "a.test", 8080, true), ("a.test:8080", "a.test", 80, false), ("[::1]:80", "::1", 80, true),
        ("[::1]:80", "::1", 81, false), ("10.0.0.1:80", "10.0.0.1", 80, true), ("*:80", "a.test", 80, true),
        ("*:80", "a.test", 81, false), ("a.test:x", "a.test", 80, false), ("a.test:0", "a.test", 80, false),
        ("10.0.0.0/8:80", "10.1.1.1", 80, true), ("10.0.0.0/8:80", "10.1.1.1", 81, false),
    ])
    func exceptionsMayHavePorts(_ list: String, _ host: String, _ port: UInt16, _ isExcepted: Bool) {
        #expect((ProxyExceptions(list).entry(for: host, port: port) != nil) == isExcepted)
    }

    // MARK: The environment

    private func choice(
        _ variables: [String: String], _ url: String, _ policy: Proxy.Policy = .environment
    ) throws -> Proxy.Choice? {
        try policy.choice(for: Request(url), try Request(url).target(), ProxyEnvironment { variables[$0] })
    }

    @Test func variablesSelectTheProxyBySchemeOfTheURL() throws {
        let variables = [
            "http_proxy": "http://plain.test:1", "https_proxy": "http://secure.test:2", "all_proxy": "all.test",
        ]
        #expect(try choice(variables, "http://a.test/")?.description == "http://plain.test:1 (http_proxy)")
        #expect(try choice(variables, "https://a.test/")?.description == "http://secure.test:2 (https_proxy)")
        #expect(try choice(["all_proxy": "socks5h://all.test"], "http://a.test/")?.reason == .variable("all_proxy"))
        #expect(try choice(["ALL_PROXY": "socks5h://all.test"], "https://a.test/")?.proxy?.scheme == .socks5h)
        #expect(try choice([:], "https://a.test/") == nil)
        #expect(try choice(["http_proxy": "plain.test"], "https://a.test/") == nil)
    }

    @Test func lowerCaseTakesPrecedenceAndHTTP_PROXYIsIgnored() throws {
        #expect(try choice(["HTTP_PROXY": "evil.test"], "http://a.test/") == nil)
        #expect(try choice(["HTTPS_PROXY": "upper.test"], "https://a.test/")?.reason == .variable("HTTPS_PROXY"))
        #expect(
            try choice(["HTTPS_PROXY": "upper.test", "https_proxy": "lower.test"], "https://a.test/")?.proxy?.host
                == "lower.test")
        #expect(
            try choice(["HTTPS_PROXY": "upper.test", "https_proxy": ""], "https://a.test/")?.proxy?.host == "upper.test"
        )
    }

    @Test func exceptedServersAreReachedDirectlyAndTheEntryIsNamed() throws {
        var variables = ["https_proxy": "proxy.test", "no_proxy": "b.test, .a.test"]
        #expect(try choice(variables, "https://www.a.test/")?.description == "direct (“.a.test” in no_proxy)")
        #expect(try choice(variables, "https://c.test/")?.proxy != nil)
        variables = ["https_proxy": "proxy.test", "NO_PROXY": "*"]
        #expect(try choice(variables, "https://c.test/")?.reason == .exception("*", in: "NO_PROXY"))
    }

    @Test func invalidVariableFailsTheRequestsItIsAbout() throws {
        let variables = ["https_proxy": "gopher://user:secret@proxy.test", "no_proxy": "a.test"]
        let error = #expect(throws: NetworkError.self) { _ = try choice(variables, "https://b.test/") }
        #expect(error?.message.contains("https_proxy") == true && error?.message.contains("secret") == false)
        #expect(try choice(variables, "https://a.test/")?.proxy == nil)
        #expect(try choice(variables, "http://b.test/") == nil)
    }

    @Test func closureChangesTheProxyOfAVariable() throws {
        let policy = Proxy.Policy.environment { $0.credentials = .basic("anna", "secret") }
        let variables = ["https_proxy": "http://proxy.test:3128", "no_proxy": "a.test"]
        let changed = try choice(variables, "https://b.test/", policy)
        #expect(changed?.description == "http://proxy.test:3128 (https_proxy)")
        #expect(changed?.proxy?.credentials == .basic("anna", "secret"))
        #expect(try choice(variables, "https://a.test/", policy)?.reason == .exception("a.test", in: "no_proxy"))
        #expect(try choice(variables, "http://b.test/", policy) == nil)
        #expect(policy == policy && policy != .environment && policy != .environment { _ in })
        #expect(policy.description == "environment, changed by a closure")
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(policy) }
    }

    @Test func curlCommandTakesTheSameRouteWithoutCredentials() throws {
        let proxy = try Proxy("http://anna:secret@proxy.test:3128")
        let rows: [(Request.Options, String)] = [
            ([.proxy(.none)], "--noproxy '*'"), ([.unixSocket("/run/a.sock")], "--unix-socket /run/a.sock"),
            ([.unixSocket("@a")], "--abstract-unix-socket a"),
            ([.proxy(.always(proxy, except: "b.test"))], "--proxy http://proxy.test:3128"),
            ([.proxy(.always(proxy, except: "b.test"))], "--noproxy b.test"),
        ]
        for (options, part) in rows {
            let text = Request("http://a.test/", options: options).curlDescription(showingSecrets: true)
            #expect(text.contains(part) && !text.contains("secret"), "\(text)")
        }
        let plain = Request("http://a.test/").curlDescription(showingSecrets: true)
        #expect(!plain.contains("proxy") && !plain.contains("socket"))
    }

    // MARK: Coding

    @Test(arguments: [
        #""environment""#, #""none""#, #"{"url":"http:\/\/proxy.test:3128"}"#,
        #"{"except":"localhost, .b.test","tunnelsPlainHTTP":true,"url":"socks5h:\/\/proxy.test:1080"}"#,
    ])
    func policiesAreCoded(_ text: String) throws {
        let policy = try JSONDecoder().decode(Proxy.Policy.self, from: Data(text.utf8))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(policy), as: UTF8.self) == text)
    }

    @Test func credentialsAreNeitherEncodedNorDecoded() throws {
        let policy = Proxy.Policy.always(try Proxy("http://anna:secret@proxy.test:3128"))
        #expect(!String(decoding: try JSONEncoder().encode(policy), as: UTF8.self).contains("secret"))
        let error = #expect(throws: DecodingError.self) {
            _ = try JSONDecoder().decode(Proxy.Policy.self, from: Data(#""http://anna:secret@proxy.test""#.utf8))
        }
        #expect(error.map { !"\($0)".contains("secret") } == true)
        #expect(throws: EncodingError.self) { try JSONEncoder().encode(Proxy.Policy.custom { _ in nil }) }
    }
}
