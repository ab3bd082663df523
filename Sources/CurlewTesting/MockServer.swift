// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
internal import CurlewSupport

// CurlewTesting supports tests of networking code: a real HTTP/1.1 server on the loopback interface with scripted
// responses and faults (MockServer), certificates made at run time (TestAuthority), and bodies of any size that need
// no memory (PatternBody). It is a separate product, so that apps do not ship it.

/// An HTTP/1.1 server on the loopback interface that sends scripted responses and fails on demand.
///
/// The server listens from `init` on at a port that the system chooses, with one thread for each connection. It ends
/// with `stop()` or when its last reference is released. It does real input and output: a client cannot distinguish it
/// from a remote server.
///
/// Routes (`on`) make the responses; of the matching routes the latest one wins. If no route matches, the closure
/// given to `init` makes the response. Closures run on the connection's thread after the server has read the request's
/// body, unless the route reads it differently (`BodyReading`).
///
/// ```swift
/// let server = try MockServer()
/// server.on("GET", "/users/1", .json(#"{"id":1}"#))
/// server.on("POST", "/echo") { request in .bytes(request.body) }
/// let gate = Gate()
/// server.on("GET", "/slow", .text("done").fault(.stall(gate), at: .start))
/// // … requests to server.url("/users/1") …
/// let request = await server.nextRequest()
/// ```
public final class MockServer: Sendable {
    /// Options that are rarely needed.
    public struct Options: Sendable {
        /// The port; 0, the default, lets the system choose a free one.
        public var port: UInt16 = 0
        /// The number of bytes of a request's body that `RecordedRequest.body` keeps; 1 MiB by default.
        ///
        /// The server reads, counts and digests the rest, but does not keep it.
        public var requestBodyLimit = 1 << 20
        /// The size of the kernel's send and receive buffers in bytes; the system's default when nil.
        ///
        /// Small buffers make back-pressure show early.
        public var socketBufferSize: Int?
        /// The way the fallback closure of `init` reads bodies; whole by default.
        public var reading = BodyReading.whole
        /// Returns the faults that happen to a connection before its handshake and its first request.
        ///
        /// The argument is the connection's number; the first is 1. The default returns no faults. The closure runs on
        /// the connection's thread. `SocketFault.send` sends unencrypted bytes, even if the server speaks TLS.
        public var onAccept: @Sendable (Int) -> [SocketFault] = { _ in [] }
        /// The TLS options, used if `init` gets an identity.
        public var tls = TLSOptions()

        /// Creates the default options.
        public init() {}
    }

    /// The port that the server listens at.
    public let port: UInt16
    /// The origin of the server: `http://127.0.0.1:1234`, `http://[::1]:1234` or, with TLS,
    /// `https://localhost:1234`.
    public let origin: String

    private let core: ServerCore

    /// Starts a server.
    /// - Parameters:
    ///   - tls: The identity to present in TLS handshakes; without it the server speaks plain HTTP.
    ///   - address: The loopback address to listen on; 127.0.0.1 by default.
    ///   - options: Options that are rarely needed.
    ///   - respond: Makes the response when no route matches; by default a 404 with a text.
    /// - Throws: `TestingError` if the system gives no socket or OpenSSL rejects the identity.
    public init(
        tls: TestIdentity? = nil,
        address: LoopbackAddress = .v4,
        options: Options = Options(),
        _ respond: @escaping @Sendable (RecordedRequest) -> MockResponse = MockServer.notFound
    ) throws {
        let context = try tls.map { try TLSContext($0, options.tls) }
        let fallback = Route(method: nil, path: "*", reading: options.reading, respond: respond)
        core = try ServerCore(options, tls: context, address: address, fallback: fallback)
        port = core.port
        origin = tls == nil ? "http://\(address.host):\(port)" : "https://localhost:\(port)"
        try core.start()
    }

    deinit {
        core.endForGood()
    }

    /// Returns the default response: 404 with a text that names method and path.
    public static func notFound(_ request: RecordedRequest) -> MockResponse {
        .text("No route for \(request.method) \(request.path)\n", status: 404)
    }

    /// Returns the URL of a path on this server.
    /// - Parameter path: Path and query, already percent-encoded, with or without the leading slash.
    public func url(_ path: String = "/") -> String {
        path.hasPrefix("/") ? origin + path : "\(origin)/\(path)"
    }

    // MARK: Routes

    /// Adds a route that responds to requests for a path with the result of a closure.
    ///
    /// If several routes match, the route added last wins.
    /// - Parameters:
    ///   - method: The method; nil matches any method. `GET` does not match HEAD.
    ///   - path: The path without query, compared as sent; with a final `*` it matches every path with that prefix.
    ///   - reading: The way the server reads the body before it calls the closure.
    ///   - respond: Makes the response; called on the connection's thread, for several connections at once.
    public func on(
        _ method: String?,
        _ path: String,
        reading: BodyReading = .whole,
        _ respond: @escaping @Sendable (RecordedRequest) -> MockResponse
    ) {
        let route = Route(method: method, path: path, reading: reading, respond: respond)
        core.routes.withLock { routes in
            if !routes.isEmpty { routes.append(route) }
        }
    }

    /// Adds a route that responds to every request for a path with the same script.
    public func on(_ method: String?, _ path: String, _ response: MockResponse, reading: BodyReading = .whole) {
        on(method, path, reading: reading) { _ in response }
    }

    /// Adds a route that responds to requests for a path with one script after another and then repeats the last one.
    ///
    /// The scripts are used in the order in which the requests arrive.
    /// - Precondition: There is at least one response.
    public func on(
        _ method: String?, _ path: String, inOrder responses: [MockResponse], reading: BodyReading = .whole
    ) {
        precondition(!responses.isEmpty, "A route needs a response.")
        let count = Lock(0)
        on(method, path, reading: reading) { _ in
            let index = count.withLock { count in
                defer { count = min(count + 1, responses.count - 1) }
                return count
            }
            return responses[index]
        }
    }

    // MARK: Recorded requests and counts

    /// The requests whose heads the server has read, oldest first; at most the latest 10 000.
    ///
    /// The body of an element may still be incomplete: see `RecordedRequest.isBodyComplete`.
    public var requests: [RecordedRequest] {
        core.state.read { Array($0.requests.suffix(ServerState.requestLimit)) }
    }

    /// Returns the oldest request that no earlier call has returned, and suspends the task until its head has been
    /// read.
    ///
    /// The server has usually not read the body yet.
    /// - Returns: The request; nil if the task is cancelled, or if the server is stopped and all requests were
    ///   returned.
    public func nextRequest() async -> RecordedRequest? {
        await core.state.wait { $0.takeNext() } ?? nil
    }

    /// The number of connections accepted so far.
    public var connectionCount: Int {
        core.state.read(\.connectionCount)
    }

    /// The number of connections that are open now.
    public var openConnections: Int {
        core.state.read(\.openConnections)
    }

    /// The number of response bytes that the kernel has accepted so far on all connections: heads, bodies and framing,
    /// without TLS overhead.
    ///
    /// The number does not grow while clients do not read.
    public var bytesSent: Int {
        core.state.read(\.bytesSent)
    }

    /// Descriptions of the HTTP/1.1 violations in the received requests; the first 100.
    ///
    /// A test of a client expects an empty array.
    public var violations: [String] {
        core.state.read(\.violations)
    }

    /// The reasons for failed TLS handshakes in the words of OpenSSL, including alerts from the client; the first 100.
    ///
    /// For example, `tlsv1 alert unknown ca` is an alert that a client sent, and `certificate verify failed:
    /// certificate has expired` is the server's verdict on a client's certificate. A client that disconnects during the
    /// handshake counts as a failure, too.
    public var tlsFailures: [String] {
        core.state.read(\.tlsFailures)
    }

    /// Suspends the task until the given number of connections is open.
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitUntil(openConnections count: Int) async -> Bool {
        await core.state.wait { $0.openConnections == count ? true : nil } ?? false
    }

    /// Suspends the task until at least the given number of connections has been accepted.
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitUntil(connectionCount count: Int) async -> Bool {
        await core.state.wait { $0.connectionCount >= count ? true : nil } ?? false
    }

    /// Suspends the task until at least the given number of TLS handshakes has failed.
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitUntil(tlsFailureCount count: Int) async -> Bool {
        await core.state.wait { $0.tlsFailureCount >= count ? true : nil } ?? false
    }

    // MARK: Shutdown

    /// Shuts down all open connections in both directions; clients see the end of the connection.
    ///
    /// The server continues to accept new connections.
    public func disconnectAll() {
        core.state.read { state in
            for socket in state.sockets.values { Socket.disconnect(socket) }
        }
    }

    /// Closes the port and all connections and waits until the server's threads have ended.
    ///
    /// The threads end at once unless a route's closure is still running. On a thread of the server (in a route's
    /// closure) the method does not wait. The recorded requests and counts stay readable. A second call does nothing.
    public func stop() {
        core.end()
    }
}
