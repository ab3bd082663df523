// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// Runs transfers of every kind and measures the memory, descriptors and threads that they leave.
struct MixedScene {
    struct Result: Codable {
        var base: ProcessFigures
        var final: ProcessFigures
        /// The number of transfers by kind and outcome.
        var outcomes: [String: Int]
        /// Resident memory after the warm-up and at the end, in KiB.
        var baseMemory: Int
        var finalMemory: Int
    }

    private enum Kind: CaseIterable {
        case data, secure, stream, upload, uploadStream, uploadFile, cancelled, abandoned, failed, refused
    }

    private static let count = 1000
    private static let atOnce = 16
    /// A regular file that exists on every system.
    private static let file = "/etc/passwd"
    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        // Warm up, so that threads, caches and libraries that a process has only once do not count.
        _ = try await transfers(Kind.allCases.count * 20)
        let base = await ProcessFigures.atRest()
        let baseMemory = ProcessFigures.trimmed()
        let outcomes = try await transfers(Self.count)
        let final = await ProcessFigures.atRest()
        return Result(
            base: base, final: final, outcomes: outcomes, baseMemory: baseMemory,
            finalMemory: ProcessFigures.trimmed())
    }

    /// Runs transfers in a new session and shuts the session down.
    private func transfers(_ count: Int) async throws -> [String: Int] {
        let session = try Session(trust: servers.trust) { $0.timeouts.connect = .seconds(20) }
        var outcomes: [String: Int] = [:]
        await withTaskGroup(of: String.self) { group in
            for number in 0..<count {
                let kind = Kind.allCases[number % Kind.allCases.count]
                if number >= Self.atOnce, let outcome = await group.next() { outcomes[outcome, default: 0] += 1 }
                group.addTask { await "\(kind): \(outcome(of: kind, on: session))" }
            }
            for await outcome in group { outcomes[outcome, default: 0] += 1 }
        }
        try await session.shutdown(.graceful(within: .seconds(10)))
        return outcomes
    }

    private func outcome(of kind: Kind, on session: Session) async -> String {
        do {
            return try await run(kind, on: session)
        } catch {
            return error.kind.rawValue
        }
    }

    private func run(_ kind: Kind, on session: Session) async throws(NetworkError) -> String {
        switch kind {
        case .data: try await whole(Request(.get, servers.plain + "/data"), session)
        case .secure: try await whole(Request(.get, servers.secure + "/data"), session)
        case .upload: try await whole(put(.bytes([UInt8](repeating: 7, count: 100_000))), session)
        case .uploadStream: try await whole(put(.stream(Pieces(count: 30), length: nil)), session)
        case .uploadFile: try await whole(put(.file(Self.file)), session)
        case .stream: try await streamed(session)
        case .cancelled: try await cancelledMidway(session)
        case .abandoned: try await abandoned(session)
        case .failed: try await whole(Request(.get, servers.plain + "/reset"), session)
        case .refused: try await whole(Request(.get, "http://127.0.0.1:1/"), session)
        }
    }

    private func put(_ body: RequestBody) -> Request { Request(.put, servers.plain + "/upload", body: body) }

    private func whole(_ request: Request, _ session: Session) async throws(NetworkError) -> String {
        let (data, head) = try await session.data(for: request)
        return "\(head.status.rawValue) \(data.count)"
    }

    private func streamed(_ session: Session) async throws(NetworkError) -> String {
        var count = 0
        for try await chunk in session.transfer(Request(.get, servers.plain + "/stream")).bytes { count += chunk.count }
        return "\(count)"
    }

    /// Cancels a transfer after its first bytes, while the server holds back the rest.
    private func cancelledMidway(_ session: Session) async throws(NetworkError) -> String {
        let transfer = session.transfer(Request(.get, servers.plain + "/held"))
        var bytes = transfer.bytes.makeAsyncIterator()
        let first = try await bytes.next()
        transfer.cancel()
        _ = try await bytes.next()
        return "not cancelled after \(first?.count ?? 0)"
    }

    /// Leaves the loop early, which cancels the transfer.
    private func abandoned(_ session: Session) async throws(NetworkError) -> String {
        let transfer = session.transfer(Request(.get, servers.plain + "/held"))
        for try await chunk in transfer.bytes { return "\(chunk.count)" }
        return "empty"
    }
}

/// A body of chunks with odd sizes.
struct Pieces: AsyncSequence, Sendable {
    let count: Int

    struct Iterator: AsyncIteratorProtocol {
        let count: Int
        var number = 0

        mutating func next() async -> [UInt8]? {
            number += 1
            return number > count ? nil : [UInt8](repeating: UInt8(number), count: number * 331)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(count: count) }
}
