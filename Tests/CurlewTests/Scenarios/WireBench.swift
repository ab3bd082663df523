// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// A server, plain or in TLS, and a session that trusts it.
///
/// Without an idle limit the suite's own ends what hangs: beside hundreds of tests a reader, once woken, may have to wait
/// half a minute for its turn, with the server waiting for it.
struct WireBench {
    let server: MockServer
    let session: Session

    init(
        tls: Bool = false, options: MockServer.Options = MockServer.Options(), idle: Duration? = nil,
        _ respond: @escaping @Sendable (RecordedRequest) -> MockResponse
    ) throws {
        let identity = tls ? try TestIdentity.selfSigned() : nil
        server = try MockServer(tls: identity, options: options, respond)
        let configuration = SessionConfiguration { $0.timeouts.idle = idle }
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

/// Ends of a connection, as a peer or something between makes them.
let ends: [SocketFault] = [.reset, .close]

/// A response of a head alone, written by hand, then its body.
func raw(_ fields: String, _ body: String = "") -> MockResponse {
    .raw("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n\(body)")
}

/// What must be true of the error for a message that is not HTTP: no head, and nothing kept of a body.
func expectInvalid(
    _ error: NetworkError, _ message: String? = nil, phase: NetworkError.Phase = .receiving,
    _ location: SourceLocation = #_sourceLocation
) {
    #expect(error.kind == .invalidResponse, "\(error)", sourceLocation: location)
    #expect(error.phase == phase, "\(error)", sourceLocation: location)
    #expect(error.response == nil && error.body.isEmpty, "\(error)", sourceLocation: location)
    if let message { #expect(error.message.contains(message), "\(error)", sourceLocation: location) }
}
