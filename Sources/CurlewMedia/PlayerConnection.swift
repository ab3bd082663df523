// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport

/// A connection of a player: requests and responses, one after the other, in one task.
struct PlayerConnection {
    /// The maximum size of the head of a request in bytes.
    static let headLimit = 16 << 10

    private let socket: PlayerSocket
    private let core: EndpointCore
    /// The bytes that have arrived and belong to the next request.
    private var input: [UInt8] = []

    init(_ socket: PlayerSocket, _ core: EndpointCore) { (self.socket, self.core) = (socket, core) }

    /// The time at which a wait that begins now ends.
    private var deadline: UInt64 { Monotonic.now() + core.idleTimeout }

    /// Serves requests until the connection ends.
    mutating func run() async {
        while !Task.isCancelled, let head = await nextHead() {
            let request: PlayerRequest
            do throws(PlayerRequest.Flaw) { request = try PlayerRequest(head: head) } catch {
                await refuse(error.status)
                return
            }
            guard await answer(request) else { return }
        }
    }

    /// Returns the next head; nil when the connection has ended or was refused.
    private mutating func nextHead() async -> ArraySlice<UInt8>? {
        let deadline = deadline
        while true {
            if let length = PlayerRequest.headLength(input) {
                let head = input[..<length]
                input = Array(input[length...])
                if head.count <= Self.headLimit { return head }
                await refuse(431)
                return nil
            }
            if input.count > Self.headLimit {
                await refuse(431)
                return nil
            }
            switch socket.receive(upTo: 4096) {
            case .bytes(let bytes): input += bytes
            case .end: return nil
            case .later:
                switch await core.poller.wait(for: socket.descriptor, .reading, until: deadline) {
                case .ready: continue
                case .timedOut:
                    if !input.isEmpty { await refuse(408) }
                    return nil
                case .ended: return nil
                }
            }
        }
    }

    /// Sends a response that ends the connection.
    private func refuse(_ status: Int) async {
        _ = await send(PlayerResponse(status: status).head(keepsAlive: false))
        socket.finishSending()
        // The rest of the request is read, because closing the socket before would destroy the response.
        let deadline = min(deadline, Monotonic.now() + 1_000_000_000)
        var rest = 0
        while rest < 1 << 20 {
            switch socket.receive(upTo: 16 << 10) {
            case .bytes(let bytes): rest += bytes.count
            case .end: return
            case .later:
                guard await core.poller.wait(for: socket.descriptor, .reading, until: deadline) == .ready else {
                    return
                }
            }
        }
    }

    // MARK: Responses

    /// Answers a request; returns whether the connection can carry another one.
    private func answer(_ request: PlayerRequest) async -> Bool {
        guard request.host == "127.0.0.1:\(core.port)" else { return await send(421, [], request) }
        guard let source = core.request(for: String(request.path.dropFirst())) else {
            return await send(404, [], request)
        }
        guard request.method == "GET" || request.method == "HEAD" else {
            return await send(405, ["Allow: GET, HEAD"], request)
        }
        // A player that leaves while bytes are awaited ends the wait.
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask { await deliver(source, request) }
            group.addTask {
                while true {
                    let outcome = await core.poller.wait(for: socket.descriptor, .hangUp, until: Monotonic.never)
                    if outcome != .timedOut { return false }
                }
            }
            let isOpen = await group.next() ?? false
            group.cancelAll()
            return isOpen
        }
    }

    private func send(_ status: Int, _ fields: [String], _ request: PlayerRequest) async -> Bool {
        let isSent = await send(PlayerResponse(status: status, fields).head(keepsAlive: request.keepsAlive))
        return isSent && request.keepsAlive
    }

    /// Sends a file, or the status of a failure before the head.
    private func deliver(_ source: Request, _ request: PlayerRequest) async -> Bool {
        do throws(NetworkError) {
            var media = try await core.cache.media(for: source)
            // The file may be replaced between the decision and the first bytes; then the decision is made again.
            for attempt in 0..<3 {
                if attempt > 0 { media = try await core.cache.media(for: source) }
                guard let facts = media.facts else { continue }
                let response = PlayerResponse(request, facts)
                guard let body = response.body, request.method == "GET", body.end.map({ $0 > body.start }) ?? true
                else {
                    return await sendHead(response, request)
                }
                let reader = MediaReader(media.use, from: body.start, to: body.end)
                let first = try await reader.next()
                guard media.facts == facts || body.end == nil else { continue }
                return await send(response, request, first, reader)
            }
            return await send(502, [], request)
        } catch {
            return await send(error.playerStatus, [], request)
        }
    }

    private func sendHead(_ response: PlayerResponse, _ request: PlayerRequest) async -> Bool {
        let keepsAlive = request.keepsAlive && !response.endsWithConnection
        return await send(response.head(keepsAlive: keepsAlive)) && keepsAlive
    }

    /// Sends the head and the body; a failure during the body ends the connection.
    private func send(
        _ response: PlayerResponse, _ request: PlayerRequest, _ first: ByteChunk?, _ reader: MediaReader
    ) async -> Bool {
        let keepsAlive = request.keepsAlive && !response.endsWithConnection
        guard await send(response.head(keepsAlive: keepsAlive)) else { return false }
        var (chunk, count) = (first, Int64(0))
        while let bytes = chunk {
            if response.isChunked {
                guard await send(Array("\(String(bytes.count, radix: 16))\r\n".utf8)) else { return false }
            }
            guard await send(bytes) else { return false }
            if response.isChunked { guard await send(Array("\r\n".utf8)) else { return false } }
            count += Int64(bytes.count)
            do throws(NetworkError) { chunk = try await reader.next() } catch { return false }
        }
        if response.isChunked { guard await send(Array("0\r\n\r\n".utf8)) else { return false } }
        if let body = response.body, let end = body.end, count != end - body.start { return false }
        return keepsAlive
    }

    private func send(_ bytes: [UInt8]) async -> Bool { await send(ByteChunk(bytes)) }

    /// Sends bytes as fast as the player takes them; returns false when the connection has failed or is too slow.
    private func send(_ chunk: ByteChunk) async -> Bool {
        var sent = 0
        while sent < chunk.count {
            guard !Task.isCancelled, let count = socket.send(chunk, from: sent) else { return false }
            sent += count
            if count > 0 { continue }
            guard await core.poller.wait(for: socket.descriptor, .writing, until: deadline) == .ready else {
                return false
            }
        }
        return true
    }
}

extension NetworkError {
    /// The status with which an endpoint reports the error to a player.
    fileprivate var playerStatus: Int {
        switch kind {
        case .timedOut: 504
        case .sessionClosed, .cancelled: 503
        case .cacheFailed, .resourceExhausted, .invalidRequest, .internal: 500
        default: 502
        }
    }
}
