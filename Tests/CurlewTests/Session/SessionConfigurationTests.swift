// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("SessionConfiguration")
struct SessionConfigurationTests {
    private func decode(_ json: String) throws -> Session.Configuration {
        try JSONDecoder().decode(Session.Configuration.self, from: Data(json.utf8))
    }

    @Test func defaultsAreValid() throws {
        let configuration = Session.Configuration.default
        #expect(configuration.limits.connectionsPerHost == 64 && configuration.limits.connections == 512)
        #expect(configuration.limits.responseBody == .mebibytes(64))
        #expect(configuration.tls.minimumVersion == .v1_2 && configuration.tls.maximumVersion == nil)
        #expect(configuration.fields[.userAgent]?.hasSuffix(" Curlew/\(libraryVersion)") == true)
        #expect(configuration.fields[.accept] == "*/*")
        #expect(configuration.timeouts.idle == .seconds(60) && configuration.timeouts.total == nil, "RQ-38")
        #expect(configuration.http.version == .automatic)
        #expect(configuration == Session.Configuration())
        try configuration.validate()
    }

    @Test func closureInitializerAppliesChangesAndRethrows() {
        struct Refusal: Error {}
        let changed = Session.Configuration { $0.timeouts.connect = .seconds(3) }
        #expect(changed.timeouts == Timeouts(connect: .seconds(3)))
        #expect(throws: Refusal.self) { try Session.Configuration { _ in throw Refusal() } }
    }

    @Test func decodingFillsInDefaults() throws {
        #expect(try decode("{}") == .default)
        #expect(try decode(#"{"limits":{},"tls":{},"http":{},"buffers":{},"timeouts":{}}"#) == .default)
        let read = try decode(
            #"{"limits":{"connections":7,"responseBody":1},"tls":{"minimumVersion":"1.3"},"#
                + #""http":{"version":"http1Only"},"buffers":{"receive":9},"fields":[{"name":"A","value":"1"}]}"#)
        let expected = Session.Configuration {
            $0.limits.connections = 7
            $0.limits.responseBody = 1
            $0.tls.minimumVersion = .v1_3
            $0.http.version = .http1Only
            $0.buffers.receive = 9
            $0.fields = ["A": "1"]
        }
        #expect(read == expected)
    }

    @Test(arguments: [
        #"{"limits":{"connections":-1}}"#, #"{"limits":{"responseHead":-1}}"#, #"{"buffers":{"lowWater":-1}}"#,
        #"{"limits":{"streamsPerConnection":-1}}"#, #"{"limits":{"idleConnectionLifetime":-1}}"#,
        #"{"tcp":{"userTimeout":-1}}"#, #"{"tcp":{"addressOrder":"best"}}"#, #"{"tcp":{"keepAlive":{"idle":1e300}}}"#,
        #"{"timeouts":{"connect":-1}}"#, #"{"tls":{"minimumVersion":"1.0"}}"#, #"{"http":{"version":"spdy"}}"#,
    ])
    func decodingRejectsInvalidValues(json: String) {
        #expect(throws: DecodingError.self) { try decode(json) }
    }

    @Test func connectionSettingsRoundTripThroughJSON() throws {
        let expected = Session.Configuration {
            $0.limits.streamsPerConnection = 50
            $0.limits.idleConnectionLifetime = .milliseconds(1500)
            $0.limits.connectionLifetime = .seconds(600)
            $0.tcp = .init(
                keepAlive: .init(idle: .seconds(5), interval: .seconds(2), count: 3), userTimeout: .milliseconds(250),
                fastOpen: true, addressOrder: .roundRobin)
        }
        let json =
            #"{"limits":{"streamsPerConnection":50,"idleConnectionLifetime":1.5,"connectionLifetime":600},"#
            + #""tcp":{"keepAlive":{"idle":5,"interval":2,"count":3},"userTimeout":0.25,"fastOpen":true,"#
            + #""addressOrder":"roundRobin"}}"#
        #expect(try decode(json) == expected)
        for configuration in [expected, .default] {
            let data = try JSONEncoder().encode(configuration)
            #expect(try JSONDecoder().decode(Session.Configuration.self, from: data) == configuration)
        }
        #expect(try decode(#"{"tcp":{"keepAlive":{}}}"#).tcp.keepAlive == .init())
        try expected.validate()
    }

    @Test func encodingOmitsSensitiveFields() throws {
        var configuration = Session.Configuration {
            $0.fields[.authorization] = "s3cret"
            $0.tls.maximumVersion = .v1_3
            $0.timeouts.idle = nil
        }
        let data = try JSONEncoder().encode(configuration)
        #expect(!String(decoding: data, as: UTF8.self).contains("s3cret"))
        configuration.fields[.authorization] = nil
        #expect(try JSONDecoder().decode(Session.Configuration.self, from: data) == configuration)
    }

    @Test func descriptionHidesSecrets() {
        let configuration = Session.Configuration { $0.fields[.authorization] = "s3cret" }
        #expect(!"\(configuration)".contains("s3cret"))
    }

    private static let nonsense: [(String, @Sendable (inout Session.Configuration) -> Void)] = [
        ("timeouts.connect", { $0.timeouts.connect = .zero }),
        ("limits.connectionsPerHost", { $0.limits.connectionsPerHost = 0 }),
        ("limits.connections", { $0.limits.connections = 0 }),
        ("limits.transfersPerHost", { $0.limits.transfersPerHost = -1 }),
        ("limits.streamsPerConnection", { $0.limits.streamsPerConnection = 0 }),
        ("limits.idleConnectionLifetime", { $0.limits.idleConnectionLifetime = .seconds(-1) }),
        ("limits.connectionLifetime", { $0.limits.connectionLifetime = .zero }),
        ("tcp.keepAlive.idle", { $0.tcp.keepAlive = .init(idle: .milliseconds(999)) }),
        ("tcp.keepAlive.interval", { $0.tcp.keepAlive = .init(interval: .seconds(32_768)) }),
        ("tcp.keepAlive.count", { $0.tcp.keepAlive = .init(count: 128) }),
        ("tcp.userTimeout", { $0.tcp.userTimeout = .microseconds(999) }),
        ("tcp.userTimeout", { $0.tcp.userTimeout = .seconds(3_000_000) }),
        ("limits.responseBody", { $0.limits.responseBody = 0 }),
        ("limits.responseHead", { $0.limits.responseHead = 0 }),
        ("buffers.highWater", { $0.buffers.highWater = 0 }),
        ("buffers.receive", { $0.buffers.receive = 0 }),
        ("buffers.lowWater", { $0.buffers.lowWater = -1 }),
        ("buffers.lowWater", { $0.buffers.lowWater = .mebibytes(2) }),
        ("tls.maximumVersion", { $0.tls = .init(minimumVersion: .v1_3, maximumVersion: .v1_2) }),
        ("“A\\n”", { $0.fields["A\n"] = "" }),
        ("“A”", { $0.fields["A"] = "\n" }),
    ]

    @Test(arguments: nonsense.indices)
    func validationErrorNamesTheInvalidMember(index: Int) {
        let (name, change) = Self.nonsense[index]
        let error = #expect(throws: NetworkError.self) { try Session.Configuration(change).validate() }
        #expect(error?.kind == .invalidRequest)
        #expect(error?.message.contains(name) == true)
    }
}
