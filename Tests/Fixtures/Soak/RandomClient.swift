// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// One of many clients that use sessions at random: it downloads, uploads, reads slowly, pauses and cancels.
struct RandomClient {
    private enum RandomAction: CaseIterable {
        case get, getLater, stream, slowStream, abandon, pause, cancelTransfer, cancelTask
        case post, put, putStream, putWrongLength, putEarly, putSlowly, refused
    }

    let sessions: [Session]
    let origins: [String]
    var chance: Chance

    /// Performs one random action and returns its result, as "action: outcome".
    mutating func act() async -> String {
        let deed = RandomAction.allCases.randomElement(using: &chance) ?? .get
        guard let session = sessions.randomElement(using: &chance), let origin = origins.randomElement(using: &chance)
        else { return "nothing" }
        do throws(NetworkError) {
            return "\(deed): \(try await act(deed, session, origin))"
        } catch {
            if error.kind == .internal { return "\(deed): internal: \(error)" }
            return "\(deed): \(error.kind.rawValue)"
        }
    }

    private mutating func act(_ deed: RandomAction, _ session: Session, _ origin: String) async throws(NetworkError)
        -> String
    {
        switch deed {
        case .get: return try await whole(get(origin), session)
        case .getLater: return try await started(session.transfer(get(origin)))
        case .stream: return try await streamed(session.transfer(get(origin)), pause: 0)
        case .slowStream: return try await streamed(session.transfer(get(origin)), pause: chance.number(1...5))
        case .abandon: return try await abandoned(session.transfer(get(origin)))
        case .pause: return try await paused(session.transfer(get(origin)))
        case .cancelTransfer: return try await cancelled(session.transfer(get(origin)))
        case .cancelTask: return await cancelledTask(session.transfer(get(origin)))
        case .refused: return try await whole(Request(.get, "http://127.0.0.1:1/"), session)
        case .post, .put, .putStream, .putWrongLength, .putEarly, .putSlowly:
            return try await sent(upload(deed, origin), session)
        }
    }

    private mutating func number() -> UInt64 { UInt64.random(in: 0..<100_000, using: &chance) }

    private mutating func get(_ origin: String) -> Request {
        var request = Request(.get, "\(origin)/\(number())")
        request.options.priority = chance.onceIn(4) ? .high : .normal
        return request
    }

    // MARK: Downloads

    /// Compares the length in a response's head with the number of received bytes.
    private func checked(_ head: ResponseHead, _ count: Int) -> String {
        if let said = head["X-Length"], said != "\(count)" { return "CORRUPT: \(count) bytes of \(said)" }
        return "\(head.status.code)"
    }

    private func whole(_ request: Request, _ session: Session) async throws(NetworkError) -> String {
        let (body, head) = try await session.data(for: request)
        return checked(head, body.count)
    }

    private func started(_ transfer: Transfer<some Collection>) async throws(NetworkError) -> String {
        let response = try await transfer.start().response()
        return checked(response.head, response.value.count)
    }

    private func streamed(_ transfer: Transfer<some Sendable>, pause: Int) async throws(NetworkError) -> String {
        var count = 0
        for try await chunk in transfer.bytes {
            count += chunk.count
            if pause > 0 { await elapse(milliseconds: pause) }
        }
        return "\(count == 0 ? "empty" : "read")"
    }

    private func abandoned(_ transfer: Transfer<some Sendable>) async throws(NetworkError) -> String {
        for try await _ in transfer.bytes { return "left" }
        return "empty"
    }

    private mutating func paused(_ transfer: Transfer<some Collection>) async throws(NetworkError) -> String {
        transfer.start()
        for _ in 0..<chance.number(1...5) {
            await elapse(milliseconds: chance.number(0...20))
            transfer.pause()
            await elapse(milliseconds: chance.number(0...20))
            transfer.resume()
        }
        return try await started(transfer)
    }

    private mutating func cancelled(_ transfer: Transfer<some Collection>) async throws(NetworkError) -> String {
        transfer.start()
        await elapse(milliseconds: chance.number(0...60))
        transfer.cancel()
        return try await started(transfer)
    }

    private mutating func cancelledTask(_ transfer: Transfer<some Collection & Sendable>) async -> String {
        let task = Task {
            do throws(NetworkError) { return "\(try await transfer.response().head.status.code)" } catch {
                return error.kind == .internal ? "internal: \(error)" : error.kind.rawValue
            }
        }
        await elapse(milliseconds: chance.number(0...60))
        task.cancel()
        return await task.value
    }

    // MARK: Uploads

    private mutating func upload(_ deed: RandomAction, _ origin: String) -> Request {
        let count = [0, 10, 3000, 200_000, 1_500_000].randomElement(using: &chance) ?? 0
        let bytes = RequestBody.bytes([UInt8](repeating: 7, count: count))
        let pieces = chance.number(1...40)
        let length = Int64((1...pieces).reduce(0) { $0 + $1 * 331 })
        let place = ["early", "prefix", "after", "stuck", "reset"].randomElement(using: &chance) ?? "early"
        switch deed {
        case .post: return Request(.post, "\(origin)/\(number())", body: bytes)
        case .put: return Request(.put, "\(origin)/\(number())", body: bytes)
        case .putStream:
            let known = chance.onceIn(2)
            return Request(
                .put, "\(origin)/\(number())", body: .stream(Pieces(count: pieces), length: known ? length : nil))
        case .putWrongLength:
            let wrong = max(0, length + Int64(chance.number(-300...300)))
            return Request(.put, "\(origin)/\(number())", body: .stream(Pieces(count: pieces), length: wrong))
        case .putSlowly: return Request(.put, "\(origin)/slow/\(number())", body: bytes)
        default: return Request(.put, "\(origin)/\(place)/\(number())", body: bytes)
        }
    }

    /// Sends a request and compares the length of its body with the number of bytes that the server has read.
    private func sent(_ request: Request, _ session: Session) async throws(NetworkError) -> String {
        let (_, head) = try await session.data(for: request)
        if let read = head["X-Read"], let length = request.body.length, read != "\(length)" {
            return "CORRUPT: \(read) bytes of \(length) arrived"
        }
        return "\(head.status.code)"
    }
}
