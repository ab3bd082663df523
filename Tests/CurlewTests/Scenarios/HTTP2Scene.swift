// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// An HTTP/2 server and a session that trusts it.
struct HTTP2Scene: Sendable {
    let server: HTTP2Server
    let session: Session

    /// - Parameters:
    ///   - isSecure: Whether to use TLS; without it, the session uses HTTP/2 with prior knowledge.
    ///   - idle: The session's idle timeout; unset by default, so that slow readers do not time out.
    ///   - acknowledgesSettings: Whether the server acknowledges the client's SETTINGS.
    ///   - configure: Changes the session's configuration.
    ///   - connection: The script of the connection, by its number.
    ///   - respond: The script of a stream.
    init(
        isSecure: Bool = true, idle: Duration? = nil, acknowledgesSettings: Bool = true,
        configure: (inout Session.Configuration) -> Void = { _ in },
        connection: @escaping @Sendable (Int) -> HTTP2Script = { _ in .now.settings() },
        _ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script
    ) throws {
        let authority = try TestAuthority()
        var options = HTTP2Server.Options()
        options.connection = connection
        options.acknowledgesSettings = acknowledgesSettings
        server = try HTTP2Server(tls: isSecure ? authority.issue() : nil, options: options, respond)
        var configuration = Session.Configuration()
        configuration.timeouts.idle = idle
        if !isSecure { configuration.http.version = .http2PriorKnowledge }
        configure(&configuration)
        session = try Session(configuration, trust: CustomRoots(pem: authority.certificatePEM))
    }

    func request(_ path: String = "/") -> Request { Request(server.url(path)) }

    func post(_ body: RequestBody, _ path: String = "/") -> Request { Request(.post, server.url(path), body: body) }

    /// Reads a transfer's head, opens the gate and returns the error that ends the transfer.
    func failureAfterHead(
        opening gate: Gate, _ location: SourceLocation = #_sourceLocation
    ) async throws -> NetworkError {
        let transfer = session.transfer(request())
        return try await networkError(location) {
            for try await element in transfer.stream {
                if case .head(let head) = element {
                    #expect(head.status == .ok, sourceLocation: location)
                    gate.open()
                }
            }
        }
    }

    func failure(_ request: Request? = nil, _ location: SourceLocation = #_sourceLocation) async throws -> NetworkError
    {
        try await networkError(location) { try await session.data(for: request ?? self.request()) }
    }
}
