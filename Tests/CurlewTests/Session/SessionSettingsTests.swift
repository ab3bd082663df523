// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Configurations from JSON and from the environment.
@Suite struct SessionSettingsTests {
    @Test func jsonSetsMembersAndKeepsDefaults() throws {
        let text = """
            {"timeouts": {"connect": 3}, "limits": {"connections": 20, "requestsPerConnection": 7}, "proxy": "none",
             "tcp": {"forbiddenInterfaces": ["cellular", "name:wwan*"], "trafficClass": 10}, "http": {"ping": {}},
             "redirects": {"policy": "never"}, "isEphemeral": true}
            """
        let read = try Session.Configuration(json: text.utf8)
        var expected = Session.Configuration()
        expected.timeouts.connect = .seconds(3)
        expected.limits.connections = 20
        expected.limits.requestsPerConnection = 7
        expected.proxy = .none
        expected.tcp.forbiddenInterfaces = [.cellular, .named("wwan*")]
        expected.tcp.trafficClass = .bulk
        expected.http.ping = .init()
        expected.redirects = .never
        expected.isEphemeral = true
        #expect(read == expected)
        #expect(try Session.Configuration(json: JSON().encode(read)) == read)
    }

    @Test(arguments: [
        ("[]", "not a JSON object"), ("{", "not JSON"), (#"{"timeout": {}}"#, "timeout"),
        (#"{"limits": {"conections": 2}}"#, "limits.conections"),
        (#"{"limits": {"connections": "x"}}"#, "limits.connections"),
        (#"{"limits": {"connections": -1}}"#, "limits.connections"),
        (#"{"limits": {"connections": 0}}"#, "limits.connections"),
        (#"{"http": {"version": "http9"}}"#, "http.version"), (#"{"proxy": "gopher://x"}"#, "proxy"),
        (#"{"proxy": "http://anna:hunter2@x"}"#, "proxy"), (#"{"retry": {"methods": []}}"#, "retry.limit"),
        (#"{"limits": {"requestsPerConnection": 0}}"#, "limits.requestsPerConnection"),
        (#"{"http": {"ping": {"interval": 0.001}}}"#, "http.ping"),
        (#"{"tls": {"keyLogFile": "/tmp/keys"}}"#, "tls.keyLogFile"),
        (#"{"tcp": {"trafficClass": 64}}"#, "tcp.trafficClass"),
        (#"{"tcp": {"forbiddenInterfaces": ["wwan0"]}}"#, "tcp.forbiddenInterfaces"),
    ])
    func invalidJSONNamesTheKey(_ text: String, _ name: String) {
        let error = #expect(throws: NetworkError.self) { _ = try Session.Configuration(json: text.utf8) }
        #expect(
            error?.requestFlaw == .configuration && error?.message.contains(name) == true,
            "\(String(describing: error))")
        #expect(error?.message.contains("hunter2") == false)
    }

    @Test func proxyThatCannotBeUsedIsInvalid() throws {
        var proxy = try Proxy("http://proxy.test:3128", .basic("an:na", "secret"))
        for field in [HeaderName("bad name"), .host] {
            let rule = #expect(throws: NetworkError.self) {
                try Session.Configuration { $0.proxy = .always(proxy) }.validate()
            }
            #expect(rule?.requestFlaw == .configuration && rule?.message.contains("proxy.test") == true)
            proxy.credentials = .basic("anna", "secret")
            proxy.fields = [:]
            proxy.fields[field] = "x"
        }
        let long = String(repeating: "x", count: 256)
        #expect(throws: NetworkError.self) {
            try Session.Configuration { $0.proxy = .always(try Proxy("socks5h://proxy.test", .basic("anna", long))) }
                .validate()
        }
        try Session.Configuration { $0.proxy = .always(try Proxy("http://proxy.test", .basic("anna", long))) }
            .validate()
    }

    @Test func environmentChangesMembers() throws {
        var configuration = Session.Configuration {
            $0.tls.keyLogFile = "/tmp/keys"
            $0.redirects = .custom { _ in .stop }
        }
        var expected = configuration
        expected.timeouts.connect = .milliseconds(1500)
        expected.limits.connectionsPerHost = 8
        expected.tls.minimumVersion = .v1_3
        expected.tcp.interface = "eth0"
        expected.tcp.addresses = ["a.test": ["127.0.0.1"]]
        expected.proxy = .always(try Proxy("socks5h://127.0.0.1:9050"))
        expected.isEphemeral = false
        try configuration.apply(environment: [
            "CURLEW_TIMEOUTS_CONNECT": "1.5", "CURLEW_LIMITS_CONNECTIONS_PER_HOST": "8",
            "CURLEW_TLS_MINIMUM_VERSION": "1.3", "CURLEW_TCP_INTERFACE": "eth0",
            "CURLEW_TCP_ADDRESSES": #"{"a.test": ["127.0.0.1"]}"#,
            "CURLEW_PROXY": "socks5h://127.0.0.1:9050", "CURLEW_LIMITS_CONNECTIONS": "", "CURLEW_LIBCURL": "/x",
            "CURLEW_IS_EPHEMERAL": "false", "PATH": "/bin",
        ])
        #expect(configuration == expected)
    }

    @Test(arguments: [
        ("CURLEW_LIMITS_CONECTIONS", "2"), ("CURLEW_LIMITS_CONNECTIONS", "many"), ("CURLEW_TCP_TRAFFIC_CLASS", "x"),
        ("CURLEW_PROXY", "http://anna:hunter2@x"), ("CURLEW_TLS_KEY_LOG_FILE", "/tmp/keys"),
    ])
    func invalidVariableIsNamedAndChangesNothing(_ name: String, _ value: String) {
        var configuration = Session.Configuration()
        let error = #expect(throws: NetworkError.self) {
            try configuration.apply(environment: [name: value, "CURLEW_BUFFERS_RECEIVE": "4096"])
        }
        #expect(error?.message.contains(name) == true && error?.message.contains("hunter2") == false)
        #expect(configuration == Session.Configuration())
    }

    @Test func changedConfigurationIsValidated() {
        var configuration = Session.Configuration()
        let error = #expect(throws: NetworkError.self) {
            try configuration.apply(environment: ["CURLEW_LIMITS_CONNECTIONS": "0"])
        }
        #expect(error?.message.contains("limits.connections") == true)
    }
}
