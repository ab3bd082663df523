// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// HTTP2 is MockServer's sibling for HTTP/2: HTTP2Server answers each stream by a script (HTTP2Script) out of frames
// (HTTP2Frame). It shares ServerCore, streams, gates and recorded requests with MockServer. One thread serves one
// connection and never blocks on a single stream.

/// An HTTP/2 server on the loopback interface that answers by script, frame by frame, and breaks the rules on demand.
///
/// With an identity it speaks TLS and agrees on "h2" by ALPN (RFC 7301), without one it expects clients with prior
/// knowledge (RFC 9113 §3.3). It listens from `init` on and ends with `stop()` or with its last reference.
///
/// The closure gets a request as soon as its head has come and returns what to do on its stream; it runs on the
/// connection's thread. PING and SETTINGS are acknowledged and windows are replenished unless a script withholds them.
/// What a client does wrong is written down (`violations`), and after errors that concern the connection it is closed.
///
/// ```swift
/// let server = try HTTP2Server { request in
///     request.path == "/refused" ? .now.reset(.refusedStream) : .respond(200, text: "hello")
/// }
/// // … requests to server.url("/") …
/// let request = await server.nextRequest()
/// ```
public final class HTTP2Server: Sendable {
    /// What is seldom set.
    public struct Options: Sendable {
        /// The port; 0, the default, lets the system choose a free one.
        public var port: UInt16 = 0
        /// How many bytes of a request's body `RecordedRequest.body` keeps; 1 MiB by default.
        ///
        /// The rest is counted and digested, but not kept.
        public var requestBodyLimit = 1 << 20
        /// The size of the kernel's send and receive buffers in bytes; the system's default when nil.
        public var socketBufferSize: Int?
        /// What happens to a connection before TLS and the first frame, by its number; the first is 1.
        ///
        /// Nothing by default. Runs on the connection's thread.
        public var onAccept: @Sendable (Int) -> [SocketFault] = { _ in [] }
        /// What the server does on a connection as such, by its number, from its beginning on.
        ///
        /// By default it sends an empty SETTINGS frame, which has to be the first one (RFC 9113 §3.4). A script of its
        /// own decides about windows, limits and moments; steps that need a stream take stream 0.
        public var connection: @Sendable (Int) -> HTTP2Script = { _ in .now.settings() }
        /// Whether the client's SETTINGS are acknowledged; true by default.
        public var acknowledgesSettings = true
        /// Whether PING is answered; true by default.
        public var answersPings = true
        /// How it speaks TLS, if `init` is given an identity.
        public var tls = MockServer.TLSOptions()

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
    ///   - tls: What to show in TLS handshakes; without it the server speaks HTTP/2 without TLS.
    ///   - address: Which loopback address to listen on; 127.0.0.1 by default.
    ///   - options: What is seldom set.
    ///   - respond: The script for a request's stream, made when the request's head has come.
    /// - Throws: `TestingError` when the system gives no socket or OpenSSL refuses the identity.
    public init(
        tls: TestIdentity? = nil,
        address: LoopbackAddress = .v4,
        options: Options = Options(),
        _ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script = { _ in .respond(404) }
    ) throws {
        let context = try tls.map { try TLSContext($0, options.tls, applicationProtocol: "h2") }
        core = try ServerCore(MockServer.Options(options), tls: context, address: address, fallback: .stopped)
        port = core.port
        origin = tls == nil ? "http://\(address.host):\(port)" : "https://localhost:\(port)"
        try core.start { core, number, socket in
            HTTP2Connection.serve(core, number: number, socket: socket, options: options, respond: respond)
        }
    }

    deinit {
        core.endForGood()
    }

    /// The URL of a path on this server.
    /// - Parameter path: Path and query, with or without the leading slash, percent-encoded already.
    public func url(_ path: String = "/") -> String {
        path.hasPrefix("/") ? origin + path : "\(origin)/\(path)"
    }

    // MARK: What has happened

    /// The requests whose heads have been read, oldest first; the latest 10 000 at most.
    public var requests: [RecordedRequest] {
        core.state.read { Array($0.requests.suffix(ServerState.requestLimit)) }
    }

    /// The frames that came from clients, oldest first; the latest 10 000 at most.
    public var frames: [ReceivedFrame] {
        core.state.read { Array($0.frames.suffix(ServerState.frameLimit)) }
    }

    /// How many connections have been accepted so far.
    public var connectionCount: Int { core.state.read(\.connectionCount) }

    /// How many connections are open now.
    public var openConnections: Int { core.state.read(\.openConnections) }

    /// The most streams that were open at a time on one connection, from a request's head until both sides ended or one
    /// reset it.
    public var mostOpenStreams: Int { core.state.read(\.mostOpenStreams) }

    /// How many bytes the kernel has taken so far on all connections, without TLS.
    public var bytesSent: Int { core.state.read(\.bytesSent) }

    /// What was wrong with what clients sent, in words; the first 100.
    ///
    /// Empty is what a test of a client wants to see.
    public var violations: [String] { core.state.read(\.violations) }

    // MARK: The end

    /// Shuts down all connections that are open now, in both directions; clients see their end.
    ///
    /// New ones are welcome.
    public func disconnectAll() {
        core.state.read { state in
            for socket in state.sockets.values { Socket.disconnect(socket) }
        }
    }

    /// Closes the port and all connections and waits until the server's threads have ended.
    ///
    /// On a thread of the server it does not wait. What was recorded stays readable. Stopping twice does nothing.
    public func stop() {
        core.end()
    }
}

// MARK: Waiting

extension HTTP2Server {
    /// Suspends the task until a request's head has been read that no call returned yet, and returns it, oldest first.
    /// - Returns: nil when the task is cancelled, or when the server is stopped and all requests were returned.
    public func nextRequest() async -> RecordedRequest? {
        await core.state.wait { $0.takeNext() } ?? nil
    }

    /// Suspends the task until a request is as wanted, and returns it as it is then.
    ///
    /// ```swift
    /// let half = await server.wait(for: request) { $0.bodyLength >= 1000 }
    /// ```
    /// - Parameters:
    ///   - request: The request, as `nextRequest()` or `requests` gave it.
    ///   - isWanted: Called after each change, under a lock: it has to be quick and must not call the server.
    /// - Returns: nil when its stream has ended for good otherwise, the server is stopped, or the task is cancelled.
    public func wait(
        for request: RecordedRequest, until isWanted: @escaping @Sendable (RecordedRequest) -> Bool
    ) async -> RecordedRequest? {
        await core.state.wait { state -> RecordedRequest?? in
            let place = state.requests.firstIndex {
                $0.connection == request.connection && $0.stream == request.stream
            }
            guard let place else { return .some(nil) }
            if isWanted(state.requests[place]) { return state.requests[place] }
            return state.requests[place].isConnectionClosed || state.isStopped ? .some(nil) : nil
        } ?? nil
    }

    /// Suspends the task until the client resets a request's stream.
    /// - Returns: The code it gave; nil when the connection ended without one, or the task was cancelled.
    public func waitForReset(of request: RecordedRequest) async -> HTTP2ErrorCode? {
        await wait(for: request) { $0.resetCode != nil }?.resetCode
    }

    /// Suspends the task until a request is complete, its body included.
    /// - Returns: The request; nil when its connection ended before, or the task was cancelled.
    public func waitForBody(of request: RecordedRequest) async -> RecordedRequest? {
        await wait(for: request) { $0.isBodyComplete }
    }

    /// Suspends the task until a frame has come that is as wanted; those that came before count.
    /// - Parameter isWanted: Called under a lock: it has to be quick and must not call the server.
    /// - Returns: The oldest such frame; nil when the server is stopped or the task is cancelled.
    public func waitForFrame(
        where isWanted: @escaping @Sendable (ReceivedFrame) -> Bool
    ) async -> ReceivedFrame? {
        await core.state.wait { state -> ReceivedFrame?? in
            if let frame = state.frames.first(where: isWanted) { return frame }
            return state.isStopped ? .some(nil) : nil
        } ?? nil
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
}

extension MockServer.Options {
    init(_ options: HTTP2Server.Options) {
        self.init()
        port = options.port
        requestBodyLimit = options.requestBodyLimit
        socketBufferSize = options.socketBufferSize
        onAccept = options.onAccept
        tls = options.tls
    }
}
