// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewShims
import CurlewTesting
import FoundationEssentials
import Testing

/// The TCP options of a session's sockets, read back from the kernel.
@Suite(.timeLimit(.minutes(5)))
struct TCPOptionTests {
    /// Returns the options of this process's socket between two ports.
    ///
    /// The local port alone is ambiguous: another socket may use it with another peer.
    private func options(between local: Int, and remote: Int) throws -> curlew_tcp_options? {
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { CInt($0) }
        for descriptor in descriptors
        where Int(curlew_local_port(descriptor)) == local && Int(curlew_remote_port(descriptor)) == remote {
            var options = curlew_tcp_options()
            if curlew_tcp_read(descriptor, &options) { return options }
        }
        return nil
    }

    private func options(
        _ location: SourceLocation = #_sourceLocation, configure: (inout Session.Configuration) -> Void
    ) async throws -> curlew_tcp_options {
        let server = try MockServer { _ in .text("x") }
        let session = Session(Session.Configuration(configure))
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value == Data("x".utf8), sourceLocation: location)
        let port = try #require(Int(response.metrics.localAddress.split(separator: ":").last ?? ""))
        let found = try withExtendedLifetime((server, session)) { try options(between: port, and: Int(server.port)) }
        return try #require(found, sourceLocation: location)
    }

    @Test func tcpOptionsAreUnsetByDefault() async throws {
        let options = try await options { _ in }
        #expect(options.keep_idle == 0 && options.user_timeout == 0 && !options.fast_open)
    }

    @Test func keepAliveOptionsAreSet() async throws {
        let standard = try await options { $0.tcp.keepAlive = .init() }
        #expect(standard.keep_idle == 60 && standard.keep_interval == 10 && standard.keep_count == 6)
        let own = try await options {
            $0.tcp.keepAlive = .init(idle: .seconds(7), interval: .milliseconds(3900), count: 2)
        }
        #expect(own.keep_idle == 7 && own.keep_interval == 3 && own.keep_count == 2 && own.user_timeout == 0)
    }

    @Test func userTimeoutIsSet() async throws {
        let options = try await options { $0.tcp.userTimeout = .milliseconds(1234) }
        #expect(options.user_timeout == 1234 && options.keep_idle == 0)
    }

    /// Bytes for which the peer has a closed window count as unacknowledged.
    @Test func userTimeoutEndsUploadToStalledPeer() async throws {
        let gate = Gate()
        var options = MockServer.Options()
        options.socketBufferSize = 16 << 10
        let server = try MockServer(options: options)
        server.on("PUT", "/", .text("x"), reading: .whole.stalling(at: gate, after: 1000))
        let session = Session { $0.tcp.userTimeout = .milliseconds(300) }
        let body = RequestBody.bytes(PatternBody(seed: 1, length: 8 << 20).bytes)
        var request = Request(.put, server.url("/"), body: body)
        request.options.expectContinue = .never
        let error = try await networkError { try await session.data(for: request) }
        #expect(error.kind == .connectionLost && error.phase == .sending)
        gate.open()
    }

    /// The results do not depend on whether the kernel sends data with the first packet.
    @Test(arguments: [false, true]) func fastOpenIsSetAndDeliversRequests(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { .text($0.path).closing() }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) { $0.tcp.fastOpen = true }
        for number in 0..<10 {
            #expect(try await session.data(for: Request(server.url("/\(number)"))).0 == Data("/\(number)".utf8))
        }
        let answer = try await session.data(for: Request(.post, server.url("/post"), body: .text("body"))).0
        #expect(answer == Data("/post".utf8))
        #expect(server.connectionCount == 11 && server.requests.last?.body == Array("body".utf8))
        server.stop()
        let error = try await networkError { try await session.data(for: Request(server.url("/"))) }
        #expect(error.kind == .cannotConnect || error.kind == .connectionLost)
        #expect(try await options { $0.tcp.fastOpen = true }.fast_open)
    }
}
