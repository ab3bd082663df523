// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A server, with or without TLS, and a session that trusts it.
///
/// The idle timeout is unset by default: among hundreds of tests, a resumed reader may wait half a minute for a
/// thread while the server waits for the reader. The time limit of the suite ends a transfer that hangs.
struct WireBench {
    let server: MockServer
    let session: Session

    init(
        tls: Bool = false, options: MockServer.Options = MockServer.Options(), idle: Duration? = nil,
        _ respond: @escaping @Sendable (RecordedRequest) -> MockResponse
    ) throws {
        let identity = tls ? try TestIdentity.selfSigned() : nil
        server = try MockServer(tls: identity, options: options, respond)
        let configuration = Session.Configuration { $0.timeouts.idle = idle }
        session = tls ? Session(configuration, trust: InsecureTrust(reason: "test")) : Session(configuration)
    }

    func data(_ path: String = "/", _ method: Curlew.Method = .get) async throws -> (Data, ResponseHead) {
        try await session.data(for: Request(method, server.url(path)))
    }

    func failure(
        _ path: String = "/", _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        try await networkError(location) { try await data(path) }
    }
}

/// The ways in which a peer or a middlebox ends a connection.
let ends: [SocketFault] = [.reset, .close]

/// Returns a raw response with the given fields and body.
func raw(_ fields: String, _ body: String = "") -> MockResponse {
    .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n\(body)")
}

/// Expects the error of a malformed response: no head and no body.
func expectInvalid(
    _ error: NetworkError, _ message: String? = nil, phase: NetworkError.Phase = .receiving,
    _ location: SourceLocation = #_sourceLocation
) {
    #expect(error.kind == .invalidResponse, "\(error)", sourceLocation: location)
    #expect(error.phase == phase, "\(error)", sourceLocation: location)
    #expect(error.response == nil && error.body.isEmpty, "\(error)", sourceLocation: location)
    if let message { #expect(error.message.contains(message), "\(error)", sourceLocation: location) }
}
