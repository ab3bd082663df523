// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport

/// The listening socket, the connections and the URLs of an endpoint.
final class EndpointCore: Sendable {
    private struct State {
        var requests: [String: Request] = [:]
        var tokens: [MediaKey: String] = [:]
        /// The tokens in the order in which they were made.
        var order: [(token: String, key: MediaKey)] = []
        var connections = 0
        var task: Task<Void, Never>?
        var isClosed = false
    }

    let cache: MediaCache
    let poller: SocketPoller
    let port: UInt16
    let idleTimeout: UInt64
    private let listener: PlayerSocket
    private let options: MediaEndpoint.Options
    private let state = Lock(State())
    /// Sent when a connection has ended.
    private let ended = Signal()

    init(_ cache: MediaCache, _ options: MediaEndpoint.Options) throws(DiskFailure) {
        listener = try PlayerSocket.listening()
        guard let poller = SocketPoller() else { throw DiskFailure.noThread }
        (self.cache, self.poller, self.options) = (cache, poller, options)
        port = listener.port
        // A year is as good as no limit.
        let (seconds, attoseconds) = min(max(options.idleTimeout, .zero), .seconds(365 * 86_400)).components
        idleTimeout = UInt64(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    /// Starts to accept connections.
    func start() {
        let task = Task { await serve() }
        let isClosed = state.withLock { state in
            state.task = task
            return state.isClosed
        }
        if isClosed { task.cancel() }
    }

    func close() {
        let task = state.withLock { state in
            state.isClosed = true
            return state.task
        }
        task?.cancel()
        // The system refuses connections from now on, even while the endpoint is kept.
        listener.disconnect()
        poller.close()
    }

    func waitForEnd() async { await state.withLock { $0.task }?.value }

    var connectionCount: Int { state.withLock { $0.connections } }

    // MARK: URLs

    /// Returns the token of a request.
    func token(for request: Request, _ key: MediaKey) -> String {
        let made = (0..<2).map { _ in UInt64.random(in: 0 ... .max) }
            .flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) } }.hexadecimal
        return state.withLock { state in
            if let known = state.tokens[key] { return known }
            if state.order.count >= max(options.urls, 1) {
                let oldest = state.order.removeFirst()
                state.requests[oldest.token] = nil
                state.tokens[oldest.key] = nil
            }
            state.tokens[key] = made
            state.requests[made] = request
            state.order.append((made, key))
            return made
        }
    }

    func remove(_ token: String) -> Bool {
        state.withLock { state in
            guard state.requests.removeValue(forKey: token) != nil else { return false }
            if let index = state.order.firstIndex(where: { $0.token == token }) {
                state.tokens[state.order.remove(at: index).key] = nil
            }
            return true
        }
    }

    func request(for token: String) -> Request? { state.withLock { $0.requests[token] } }

    // MARK: Connections

    private func serve() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                let count = ended.count
                if connectionCount >= max(options.connections, 1) {
                    _ = await ended.wait(after: count)
                    continue
                }
                switch listener.accept() {
                case .connection(let socket):
                    state.withLock { $0.connections += 1 }
                    group.addTask {
                        var connection = PlayerConnection(socket, self)
                        await connection.run()
                        self.state.withLock { $0.connections -= 1 }
                        self.ended.send()
                    }
                case .later:
                    if await poller.wait(for: listener.descriptor, .reading, until: Monotonic.never) == .ended {
                        return
                    }
                case .exhausted:
                    // The listening socket stays readable, so wait for a free descriptor some other way.
                    if connectionCount > 0 {
                        _ = await ended.wait(after: count)
                    } else {
                        try? await ContinuousClock().wait(for: .milliseconds(100))
                    }
                }
            }
        }
    }
}
