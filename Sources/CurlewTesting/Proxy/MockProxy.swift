// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Proxy implements MockProxy on the threads of ServerCore. Each connection has a thread, which reads the request to the
// proxy, answers it, and then transfers bytes between the client and the server.

internal import CurlewSupport
import Glibc

/// A proxy on the loopback interface that records what clients send to it and fails on demand.
///
/// The proxy speaks HTTP (CONNECT and forwarding) or SOCKS 4, 4a and 5. The proxy ignores the host name of a request:
/// it connects to the loopback interface at the port of the request. So tests can use any host name for a
/// ``MockServer``.
///
/// ```swift
/// let server = try MockServer { _ in .text("hello") }
/// let proxy = try MockProxy(.http)
/// // … a request to http://server.test:\(server.port)/ through proxy.url …
/// print(proxy.requests[0].target)     // http://server.test:34567/
/// ```
public final class MockProxy: Sendable {
    /// The protocol that a proxy speaks.
    public enum Kind: Sendable, Hashable {
        /// HTTP/1.1 (RFC 9110 §9.3.6).
        case http
        /// SOCKS 4, 4a and 5 (RFC 1928).
        case socks
    }

    /// A request to the proxy: for a connection, or an HTTP request that the proxy forwards.
    public struct Request: Sendable, Hashable {
        /// The HTTP method, or "SOCKS4", "SOCKS4a" or "SOCKS5".
        public let method: String
        /// The host and port of CONNECT and SOCKS, or the URL of a forwarded request.
        public let target: String
        /// The fields of an HTTP request, as "Name: value"; empty for SOCKS.
        public let fields: [String]
        /// The user name of a SOCKS request; nil if the client sent no name.
        public let user: String?
        /// The password of a SOCKS 5 request; nil if the client sent no password.
        public let password: String?
        /// The number of the connection, from 1.
        public let connection: Int

        /// Returns the value of the first field with a name, in any letter case; nil if the request has no such field.
        public func field(_ name: String) -> String? {
            let prefix = name.lowercased() + ":"
            let line = fields.first { $0.lowercased().hasPrefix(prefix) }
            return line.map { String($0.dropFirst(prefix.count).drop { $0 == " " }) }
        }
    }

    /// The answer of the proxy to a request.
    public enum Answer: Sendable {
        /// Opens the connection, or forwards the request.
        case accept
        /// Refuses an HTTP request with a status, such as 407, and fields.
        ///
        /// The connection stays open, unless the fields contain "Connection: close".
        case status(Int, [String] = [])
        /// Refuses a SOCKS request with a reply code of the protocol.
        case code(UInt8)
        /// Sends these bytes and closes the connection.
        case bytes([UInt8])
        /// Waits until the gate opens, then accepts the request.
        case wait(Gate)
        /// Resets the connection.
        case reset
        /// Closes the connection.
        case close
    }

    /// The port on which the proxy listens; 0 for a Unix socket.
    public let port: UInt16
    /// The URL of the proxy, such as `http://127.0.0.1:1234`; the scheme is https with TLS, and socks5h for SOCKS.
    public let url: String

    private let core: ServerCore
    private let log: Monitor<[Request]>

    /// Starts a proxy.
    ///
    /// - Parameters:
    ///   - kind: The protocol that the proxy speaks.
    ///   - tls: The identity for TLS handshakes with clients; nil for a proxy without TLS.
    ///   - credentials: The name and the password that SOCKS 5 requires; nil, the default, to accept every client.
    ///   - options: The port and the TLS options; other options have no effect.
    ///   - answer: Returns the answer to a request; the default accepts every request. The closure runs on the
    ///     connection's thread.
    /// - Throws: `TestingError` if the system cannot open a socket, or OpenSSL rejects the identity.
    public init(
        _ kind: Kind, tls: TestIdentity? = nil, credentials: (user: String, password: String)? = nil,
        options: MockServer.Options = MockServer.Options(),
        _ answer: @escaping @Sendable (Request) -> Answer = { _ in .accept }
    ) throws {
        let context = try tls.map { try TLSContext($0, options.tls) }
        let listener = try Socket.listen(on: .v4, port: options.port, bufferSize: options.socketBufferSize)
        core = ServerCore(options, tls: context, listener: listener, fallback: .stopped)
        port = core.port
        let scheme = kind == .socks ? "socks5h" : tls == nil ? "http" : "https"
        url = "\(scheme)://\(tls == nil ? "127.0.0.1" : "localhost"):\(port)"
        let log = Monitor<[Request]>([])
        self.log = log
        let script = ProxyScript(kind: kind, credentials: credentials, answer: answer, log: log)
        try core.start { core, number, socket in
            ProxyConnection(core, number: number, socket: socket, script).run()
        }
    }

    /// Starts a proxy that connects a Unix socket to a port of the loopback interface.
    ///
    /// - Parameters:
    ///   - unixSocket: The path of a socket that does not exist yet, or "@" and the name of an abstract socket.
    ///   - port: The port of the server, usually the port of a ``MockServer``.
    /// - Throws: `TestingError` if the system cannot open a socket.
    public init(unixSocket path: String, to port: UInt16) throws {
        let listener = try Socket.listen(at: path)
        core = ServerCore(MockServer.Options(), tls: nil, listener: listener, fallback: .stopped)
        self.port = 0
        url = path
        log = Monitor([])
        try core.start { core, number, socket in
            ProxyConnection.relay(core, number: number, socket: socket, to: port)
        }
    }

    deinit { core.endForGood() }

    /// The requests that the proxy has received, oldest first.
    public var requests: [Request] { log.read { $0 } }

    /// The number of connections that the proxy has accepted.
    public var connectionCount: Int { core.state.read(\.connectionCount) }

    /// The number of connections that are open now.
    public var openConnections: Int { core.state.read(\.openConnections) }

    /// Suspends the task until the proxy has received a number of requests.
    ///
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitForRequests(_ count: Int) async -> Bool {
        await log.wait { $0.count >= count ? true : nil } ?? false
    }

    /// Suspends the task until no connection is open.
    ///
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitUntilIdle() async -> Bool {
        await core.state.wait { $0.openConnections == 0 ? true : nil } ?? false
    }

    /// Stops the proxy and closes every connection.
    public func stop() { core.end() }
}
