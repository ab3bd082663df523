// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Server implements MockServer: one thread accepts connections, one thread serves each connection, and every wait of
// these threads ends when the stop latch is set. Only MockServer and HTTP2Server call it.

internal import CurlewSupport
import Glibc

/// A route: the requests that it matches, the way it reads bodies and the closure that makes responses.
struct Route: Sendable {
    let method: String?
    let path: String
    let reading: BodyReading
    let respond: @Sendable (RecordedRequest) -> MockResponse

    func matches(_ request: RecordedRequest) -> Bool {
        guard method == nil || method == request.method else { return false }
        return path.hasSuffix("*") ? request.path.hasPrefix(path.dropLast()) : request.path == path
    }
}

/// The events and counts that the server records.
struct ServerState: Sendable {
    /// The latest requests; requests beyond the limit of the public `requests` are removed from time to time.
    var requests: [RecordedRequest] = []
    /// The number of the first element of `requests`.
    var firstNumber = 0
    /// The number of the next request for `nextRequest()`.
    var nextNumber = 0
    var connectionCount = 0
    /// The sockets of the open connections; a socket is removed before it is closed.
    var sockets: [Int: CInt] = [:]
    var openConnections = 0
    var bytesSent = 0
    var violations: [String] = []
    /// The number of failed handshakes; `tlsFailures` has the reasons for the first of them.
    var tlsFailureCount = 0
    var tlsFailures: [String] = []
    var isStopped = false
    /// The received HTTP/2 frames, bounded like `requests`.
    var frames: [ReceivedFrame] = []
    var mostOpenStreams = 0

    static let requestLimit = 10_000
    static let frameLimit = 10_000
    static let violationLimit = 100
    static let tlsFailureLimit = 100

    mutating func append(_ request: RecordedRequest) -> Int {
        if requests.count == 2 * Self.requestLimit {
            requests.removeFirst(Self.requestLimit)
            firstNumber += Self.requestLimit
        }
        requests.append(request)
        return firstNumber + requests.count - 1
    }

    mutating func append(_ frame: ReceivedFrame) {
        if frames.count == 2 * Self.frameLimit { frames.removeFirst(Self.frameLimit) }
        frames.append(frame)
    }

    /// Returns the next request that has not been returned yet, or `.some(nil)` if no more requests can arrive.
    mutating func takeNext() -> RecordedRequest?? {
        let number = max(nextNumber, firstNumber)
        guard number - firstNumber < requests.count else { return isStopped ? .some(nil) : nil }
        nextNumber = number + 1
        return requests[number - firstNumber]
    }
}

/// The state that the server's threads share; the public server owns it and stops it.
final class ServerCore: Sendable {
    let options: MockServer.Options
    let tls: TLSContext?
    let stop = EventLatch()
    let state = Monitor(ServerState())
    /// The routes, with the fallback first; later routes win.
    ///
    /// `end()` empties the array, because the closures may own the server.
    let routes: Lock<[Route]>
    let port: UInt16
    private let threads = ThreadGroup()
    private let listener: CInt

    convenience init(
        _ options: MockServer.Options, tls: TLSContext?, address: LoopbackAddress, fallback: Route
    ) throws {
        let listener = try Socket.listen(on: address, port: options.port, bufferSize: options.socketBufferSize)
        self.init(options, tls: tls, listener: listener, fallback: fallback)
    }

    /// Creates a server on a listening socket, which it owns.
    init(_ options: MockServer.Options, tls: TLSContext?, listener: CInt, fallback: Route) {
        self.options = options
        self.tls = tls
        routes = Lock([fallback])
        self.listener = listener
        port = Socket.port(of: listener)
    }

    /// Starts to accept connections and serves each connection on its own thread.
    ///
    /// The accepting thread owns the listening socket and everything that `serve` captures.
    func start(
        serving serve: @escaping @Sendable (ServerCore, _ number: Int, _ socket: CInt) -> Void = {
            core, number, socket in
            Connection(core, number: number, socket: socket).run()
        }
    ) throws {
        guard threads.start({ self.accept(serve) }) else {
            close(listener)
            throw TestingError("No thread could be started.")
        }
    }

    /// Ends the server when its owner is released; no later call of `end()` is possible.
    func endForGood() {
        end()
        threads.detach()
    }

    /// Ends the server and, unless it is called on a thread of the server, waits until all threads have ended.
    func end() {
        stop.set()
        threads.close()
        state.update { $0.isStopped = true }
        let routes = routes.withLock { routes in
            defer { routes = [] }
            return routes
        }
        // Release the routes outside the lock, because this may release the last reference to captured objects.
        withExtendedLifetime(routes) {}
    }

    private func accept(_ serve: @escaping @Sendable (ServerCore, Int, CInt) -> Void) {
        defer { close(listener) }
        let waiter = SocketWaiter(socket: listener, stop: stop)
        while (try? waiter.untilReadable()) != nil {
            threads.reap()
            switch Socket.accept(listener) {
            case .connection(let socket): begin(socket, serve)
            case .nothing: break
            case .outOfDescriptors: try? SocketWaiter(socket: -1, stop: stop).pause(.milliseconds(10))
            }
        }
    }

    private func begin(_ socket: CInt, _ serve: @escaping @Sendable (ServerCore, Int, CInt) -> Void) {
        let number = state.update { state in
            state.connectionCount += 1
            state.openConnections += 1
            state.sockets[state.connectionCount] = socket
            return state.connectionCount
        }
        if !threads.start({ serve(self, number, socket) }) {
            willClose(number)
            close(socket)
            didClose(number)
        }
    }

    // MARK: Reports from connections

    func begin(_ request: RecordedRequest) -> (route: Route, id: Int) {
        let id = state.update { $0.append(request) }
        let route = routes.withLock { routes in routes.last { $0.matches(request) } ?? routes.first }
        return (route ?? .stopped, id)
    }

    func update(_ id: Int, _ change: (inout RecordedRequest) -> Void) {
        state.update { state in
            guard id >= state.firstNumber else { return }
            change(&state.requests[id - state.firstNumber])
        }
    }

    func record(violation: String) {
        state.update { state in
            if state.violations.count < ServerState.violationLimit { state.violations.append(violation) }
        }
    }

    /// Performs the TLS handshake and returns the encrypted stream; nil on a server without TLS.
    func secure(_ waiter: SocketWaiter) throws -> TLSStream? {
        do {
            return try tls?.accept(waiter)
        } catch let failure as HandshakeFailure {
            state.update { state in
                state.tlsFailureCount += 1
                if state.tlsFailures.count < ServerState.tlsFailureLimit { state.tlsFailures.append(failure.reason) }
            }
            if failure.mayHaveUnreadBytes {
                // A `close` with unread bytes sends RST, which can destroy the server's alert before the client reads
                // it.
                Socket.finishSending(waiter.socket)
                try RequestInput(PlainStream(waiter: waiter)).discardAll()
            }
            throw Disconnect.ended
        }
    }

    func didSend(_ count: Int) {
        state.update { $0.bytesSent += count }
    }

    /// Removes the connection's socket, because the descriptor may be reused after the close.
    func willClose(_ connection: Int) {
        state.update { $0.sockets[connection] = nil }
    }

    func didClose(_ connection: Int) {
        state.update { $0.openConnections -= 1 }
    }
}

extension Route {
    /// The route for a request that arrives while the server stops.
    static let stopped = Route(method: nil, path: "*", reading: .none) { _ in .status(503).closing() }
}
