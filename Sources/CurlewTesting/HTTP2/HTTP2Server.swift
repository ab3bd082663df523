// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// HTTP2 is the counterpart of MockServer for HTTP/2: HTTP2Server runs a script (HTTP2Script) of frames (HTTP2Frame) for
// each stream. It shares ServerCore, byte streams, gates and recorded requests with MockServer. One thread serves one
// connection and never blocks on a single stream.

/// An HTTP/2 server on the loopback interface that runs scripts frame by frame and violates the protocol on demand.
///
/// With an identity, the server speaks TLS and selects "h2" by ALPN (RFC 7301). Without an identity, it expects clients
/// with prior knowledge (RFC 9113 §3.3). It listens from `init` on and ends with `stop()` or when its last reference is
/// released.
///
/// The closure gets a request as soon as its head has arrived and returns the script for its stream; it runs on the
/// connection's thread. The server acknowledges PING and SETTINGS unless the options forbid it, and replenishes windows
/// unless a script withholds them. It records the client's violations of the protocol (`violations`) and closes the
/// connection after a connection error.
///
/// ```swift
/// let server = try HTTP2Server { request in
///     request.path == "/refused" ? .now.reset(.refusedStream) : .respond(200, text: "hello")
/// }
/// // … requests to server.url("/") …
/// let request = await server.nextRequest()
/// ```
public final class HTTP2Server: Sendable {
    /// Options that are rarely needed.
    public struct Options: Sendable {
        /// The port; 0, the default, lets the system choose a free one.
        public var port: UInt16 = 0
        /// The number of bytes of a request's body that `RecordedRequest.body` keeps; 1 MiB by default.
        ///
        /// The server counts and digests the rest, but does not keep it.
        public var requestBodyLimit = 1 << 20
        /// The size of the kernel's send and receive buffers in bytes; the system's default when nil.
        public var socketBufferSize: Int?
        /// Returns the faults that happen to a connection before TLS and the first frame.
        ///
        /// The argument is the connection's number; the first is 1. The default returns no faults. The closure runs on
        /// the connection's thread.
        public var onAccept: @Sendable (Int) -> [SocketFault] = { _ in [] }
        /// Returns the script for a connection itself, which starts with the connection.
        ///
        /// The argument is the connection's number; the first is 1. The default script sends an empty SETTINGS frame,
        /// which must be the first frame (RFC 9113 §3.4). A custom script decides about windows, limits and timing;
        /// steps that need a stream use stream 0.
        public var connection: @Sendable (Int) -> HTTP2Script = { _ in .now.settings() }
        /// Whether the server acknowledges the client's SETTINGS; true by default.
        public var acknowledgesSettings = true
        /// Whether the server acknowledges PING; true by default.
        public var acknowledgesPings = true
        /// The TLS options, used if `init` gets an identity.
        public var tls = MockServer.TLSOptions()

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
    ///   - tls: The identity to present in TLS handshakes; without it the server speaks HTTP/2 without TLS.
    ///   - address: The loopback address to listen on; 127.0.0.1 by default.
    ///   - options: Options that are rarely needed.
    ///   - respond: Makes the script for a request's stream when the request's head has arrived.
    /// - Throws: `TestingError` if the system gives no socket or OpenSSL rejects the identity.
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

    /// Returns the URL of a path on this server.
    /// - Parameter path: Path and query, already percent-encoded, with or without the leading slash.
    public func url(_ path: String = "/") -> String {
        path.hasPrefix("/") ? origin + path : "\(origin)/\(path)"
    }

    // MARK: Recorded requests and counts

    /// The requests whose heads the server has read, oldest first; at most the latest 10 000.
    public var requests: [RecordedRequest] {
        core.state.read { Array($0.requests.suffix(ServerState.requestLimit)) }
    }

    /// The frames received from clients, oldest first; at most the latest 10 000.
    public var frames: [ReceivedFrame] {
        core.state.read { Array($0.frames.suffix(ServerState.frameLimit)) }
    }

    /// The number of connections accepted so far.
    public var connectionCount: Int { core.state.read(\.connectionCount) }

    /// The number of connections that are open now.
    public var openConnections: Int { core.state.read(\.openConnections) }

    /// The maximum number of streams that were open at the same time on one connection.
    ///
    /// A stream is open from the request's head until both sides have ended it or one side has reset it.
    public var mostOpenStreams: Int { core.state.read(\.mostOpenStreams) }

    /// The number of bytes that the kernel has accepted so far on all connections, without TLS overhead.
    public var bytesSent: Int { core.state.read(\.bytesSent) }

    /// Descriptions of the clients' violations of the protocol; the first 100.
    ///
    /// A test of a client expects an empty array.
    public var violations: [String] { core.state.read(\.violations) }

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
    /// On a thread of the server the method does not wait. The recorded requests, frames and counts stay readable. A
    /// second call does nothing.
    public func stop() {
        core.end()
    }
}

// MARK: Waiting

extension HTTP2Server {
    /// Returns the oldest request that no earlier call has returned, and suspends the task until its head has been
    /// read.
    /// - Returns: The request; nil if the task is cancelled, or if the server is stopped and all requests were
    ///   returned.
    public func nextRequest() async -> RecordedRequest? {
        await core.state.wait { $0.takeNext() } ?? nil
    }

    /// Suspends the task until a request satisfies a condition, and returns its state at that moment.
    ///
    /// ```swift
    /// let half = await server.wait(for: request) { $0.bodyLength >= 1000 }
    /// ```
    /// - Parameters:
    ///   - request: The request, from `nextRequest()` or `requests`.
    ///   - isWanted: The condition, called after each change under a lock: it must be quick and must not call the
    ///     server.
    /// - Returns: The request; nil if it cannot satisfy the condition any more because its connection has ended, if the
    ///   server is stopped, or if the task is cancelled.
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
    /// - Returns: The client's error code; nil if the connection ended without a reset, or the task was cancelled.
    public func waitForReset(of request: RecordedRequest) async -> HTTP2ErrorCode? {
        await wait(for: request) { $0.resetCode != nil }?.resetCode
    }

    /// Suspends the task until a request is complete, including its body.
    /// - Returns: The request; nil if its connection ended first, or the task was cancelled.
    public func waitForBody(of request: RecordedRequest) async -> RecordedRequest? {
        await wait(for: request) { $0.isBodyComplete }
    }

    /// Suspends the task until frames that satisfy a condition have arrived; earlier frames count.
    /// - Parameters:
    ///   - count: The number of frames; one by default.
    ///   - isWanted: The condition, called under a lock: it must be quick and must not call the server.
    /// - Returns: The last of the frames; nil if the server is stopped or the task is cancelled.
    @discardableResult
    public func waitForFrame(
        _ count: Int = 1, where isWanted: @escaping @Sendable (ReceivedFrame) -> Bool
    ) async -> ReceivedFrame? {
        await core.state.wait { state -> ReceivedFrame?? in
            let frames = state.frames.lazy.filter(isWanted).prefix(count)
            if frames.count == count, let last = Array(frames).last { return last }
            return state.isStopped ? .some(nil) : nil
        } ?? nil
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
