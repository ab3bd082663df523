// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlewTesting is what tests of networking code stand on: a real HTTP/1.1 server on the loopback interface whose
// answers and faults are scripted (MockServer), certificates made at run time (TestAuthority), bodies of any size that
// need no memory (PatternBody). It is a product of its own, so that none of it ships in an app.

/// An HTTP/1.1 server on the loopback interface that answers by script and fails on demand.
///
/// It listens from `init` on, at a port the system chooses, with one thread for each connection, and ends with
/// `stop()` or with its last reference. It does real input and output: a client cannot tell it from a server elsewhere.
///
/// Answers come from routes (`on`), the latest that matches first, else from the closure given to `init`. Closures run
/// on the connection's thread, after the request's body is read, unless the route reads otherwise (`BodyReading`).
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
    /// What is seldom set.
    public struct Options: Sendable {
        /// The port; 0, the default, lets the system choose a free one.
        public var port: UInt16 = 0
        /// How many bytes of a request's body `RecordedRequest.body` keeps; 1 MiB by default.
        ///
        /// The rest is read, counted and digested, but not kept.
        public var requestBodyLimit = 1 << 20
        /// The size of the kernel's send and receive buffers in bytes; the system's default when nil.
        ///
        /// A small one makes back-pressure show early.
        public var socketBufferSize: Int?
        /// How the fallback of `init` reads bodies; whole, by default.
        public var reading = BodyReading.whole
        /// What happens to a connection before its handshake and its first request, by its number; the first is 1.
        ///
        /// Nothing by default. Runs on the connection's thread; `send` sends plain bytes, over TLS too.
        public var onAccept: @Sendable (Int) -> [SocketFault] = { _ in [] }
        /// How it speaks TLS, if `init` is given an identity.
        public var tls = TLSOptions()

        /// The defaults.
        public init() {}
    }

    /// The port it listens at.
    public let port: UInt16
    /// Where it listens, as an origin: `http://127.0.0.1:1234`, `http://[::1]:1234` or, with TLS,
    /// `https://localhost:1234`.
    public let origin: String

    private let core: ServerCore

    /// Starts a server.
    /// - Parameters:
    ///   - tls: what to show in TLS handshakes; without it the server speaks plain HTTP.
    ///   - address: which loopback address to listen on; 127.0.0.1 by default.
    ///   - options: what is seldom set.
    ///   - respond: answers what no route matches; 404 with a text, by default.
    /// - Throws: `TestingError` when the system gives no socket or OpenSSL refuses the identity.
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

    /// The answer of a server that knows nothing: 404 and a text that names method and path.
    public static func notFound(_ request: RecordedRequest) -> MockResponse {
        .text("No route for \(request.method) \(request.path)\n", status: 404)
    }

    /// The URL of a path on this server.
    /// - Parameter path: path and query, with or without the leading slash, percent-encoded already.
    public func url(_ path: String = "/") -> String {
        path.hasPrefix("/") ? origin + path : "\(origin)/\(path)"
    }

    // MARK: Routes

    /// Answers requests for a path by a closure.
    ///
    /// Of several routes that match, the one added last wins.
    /// - Parameters:
    ///   - method: the method; nil is any. `GET` does not answer HEAD.
    ///   - path: the path without query, compared as sent; with a final `*` everything that begins so.
    ///   - reading: how the body is read before the closure is called.
    ///   - respond: makes the answer; called on the connection's thread, for several connections at once.
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

    /// Answers requests for a path by a script, always the same.
    public func on(_ method: String?, _ path: String, _ response: MockResponse, reading: BodyReading = .whole) {
        on(method, path, reading: reading) { _ in response }
    }

    /// Answers requests for a path by one script after another, in the order the requests come; the last one repeats.
    /// - Precondition: there is at least one response.
    public func on(
        _ method: String?, _ path: String, inOrder responses: [MockResponse], reading: BodyReading = .whole
    ) {
        precondition(!responses.isEmpty, "A route needs a response.")
        let count = Locked(0)
        on(method, path, reading: reading) { _ in
            let index = count.withLock { count in
                defer { count = min(count + 1, responses.count - 1) }
                return count
            }
            return responses[index]
        }
    }

    // MARK: What has happened

    /// The requests whose heads have been read, oldest first; the latest 10 000 at most.
    ///
    /// An element's body may still be on its way: see `RecordedRequest.isBodyComplete`.
    public var requests: [RecordedRequest] {
        core.state.read { Array($0.requests.suffix(ServerState.requestLimit)) }
    }

    /// Suspends the task until a request's head has been read that no call returned yet, and returns it, oldest first.
    ///
    /// Its body is not read yet, as a rule.
    /// - Returns: nil when the task is cancelled, or when the server is stopped and all requests were returned.
    public func nextRequest() async -> RecordedRequest? {
        await core.state.wait { $0.takeNext() } ?? nil
    }

    /// How many connections have been accepted so far.
    public var connectionCount: Int {
        core.state.read(\.connectionCount)
    }

    /// How many connections are open now.
    public var openConnections: Int {
        core.state.read(\.openConnections)
    }

    /// How many bytes of answers the kernel has taken so far, on all connections: heads, bodies and framing, without
    /// TLS.
    ///
    /// It stands still while clients do not read.
    public var bytesSent: Int {
        core.state.read(\.bytesSent)
    }

    /// What was wrong with requests that were no proper HTTP/1.1, in words; the first 100.
    ///
    /// Empty is what a test of a client wants to see.
    public var violations: [String] {
        core.state.read(\.violations)
    }

    /// Why TLS handshakes failed, in OpenSSL's words, an alert of the client included; the first 100.
    ///
    /// `tlsv1 alert unknown ca` is what a client sent, `certificate verify failed: certificate has expired` is what the
    /// server says of a client's certificate. A client that goes away in the middle counts, too.
    public var tlsFailures: [String] {
        core.state.read(\.tlsFailures)
    }

    /// Suspends the task until so many connections are open.
    /// - Returns: false when the task was cancelled first.
    @discardableResult
    public func waitUntil(openConnections count: Int) async -> Bool {
        await core.state.wait { $0.openConnections == count ? true : nil } ?? false
    }

    /// Suspends the task until at least so many connections have been accepted.
    /// - Returns: false when the task was cancelled first.
    @discardableResult
    public func waitUntil(connectionCount count: Int) async -> Bool {
        await core.state.wait { $0.connectionCount >= count ? true : nil } ?? false
    }

    /// Suspends the task until at least so many TLS handshakes have failed.
    /// - Returns: false when the task was cancelled first.
    @discardableResult
    public func waitUntil(tlsFailureCount count: Int) async -> Bool {
        await core.state.wait { $0.tlsFailureCount >= count ? true : nil } ?? false
    }

    // MARK: The end

    /// Shuts down all connections that are open now, in both directions; clients see their end.
    ///
    /// New ones are welcome.
    public func disconnectAll() {
        core.state.read { state in
            for socket in state.sockets.values { Socket.disconnect(socket) }
        }
    }

    /// Closes the port and all connections and waits until the server's threads have ended, which they do at once
    /// unless a route's closure keeps one.
    ///
    /// On a thread of the server (in such a closure) it does not wait. What was recorded stays readable. Stopping twice
    /// does nothing.
    public func stop() {
        core.end()
    }
}
