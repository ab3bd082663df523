// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// The session that sends the requests, and the servers that fail.
final class Stage {
    /// A session that trusts one root and has short timeouts, so that the program runs quickly.
    let session: Session
    let authority: TestAuthority
    private let plain: MockServer
    private var others: [MockServer] = []
    private var count = 0

    init() throws {
        let authority = try TestAuthority()
        self.authority = authority
        plain = try MockServer()
        session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { configuration in
            configuration.timeouts = Timeouts(connect: .seconds(1), idle: .milliseconds(500), total: .seconds(2))
            configuration.limits.responseHead = .kibibytes(64)
            configuration.limits.responseBody = .mebibytes(1)
        }
    }

    /// Adds a path with the given response and returns its URL.
    func url(_ response: MockResponse, reading: BodyReading = .whole) -> String {
        count += 1
        plain.on(nil, "/\(count)", response, reading: reading)
        return plain.url("/\(count)")
    }

    /// Returns the URL of a stopped server.
    func deadURL() throws -> String {
        let server = try MockServer()
        defer { server.stop() }
        return server.url("/")
    }

    /// Starts a server with the given certificate and returns its URL.
    func secureURL(
        _ identity: TestIdentity, _ response: MockResponse = .text("hello"),
        accepting faults: [SocketFault] = [], newest: MockServer.TLSOptions.Version = .v1_3
    ) throws -> String {
        var options = MockServer.Options()
        options.onAccept = { _ in faults }
        options.tls.minimumVersion = .v1_0
        options.tls.maximumVersion = newest
        let server = try MockServer(tls: identity, options: options) { _ in response }
        others.append(server)
        return server.url("/")
    }
}
