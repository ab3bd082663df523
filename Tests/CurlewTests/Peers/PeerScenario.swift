// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// What is asked of every peer, by one route with a session of its own.
struct PeerScenario<Server: PeerServer>: Sendable {
    let server: Server
    let route: PeerRoute
    let session: Session

    init(
        _ server: Server, _ route: PeerRoute, _ configure: @Sendable (inout SessionConfiguration) -> Void = { _ in }
    ) {
        (self.server, self.route) = (server, route)
        session = route.session(server, configure)
    }

    func request(
        _ method: Curlew.Method, _ path: String, fields: HeaderFields = [:], body: RequestBody = .none
    ) -> Request {
        Request(method, route.url(server, path), fields: fields, body: body)
    }

    func response(
        _ method: Curlew.Method, _ path: String, fields: HeaderFields = [:], body: RequestBody = .none
    ) async throws -> Response<Data> {
        try await session.transfer(request(method, path, fields: fields, body: body)).response()
    }

    /// Gets the small text.
    @discardableResult
    func small(_ location: SourceLocation = #_sourceLocation) async throws -> TransferMetrics {
        let response = try await response(.get, "/small.txt")
        #expect(response.status == .ok, sourceLocation: location)
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small, sourceLocation: location)
        #expect(response.metrics.version == route.version, sourceLocation: location)
        return response.metrics
    }

    /// Gets the small text so many times, some at once.
    func small(times: Int, atOnce: Int) async throws -> [TransferMetrics] {
        try await withThrowingTaskGroup(of: TransferMetrics.self) { group in
            var all: [TransferMetrics] = []
            for number in 0..<times {
                if number >= atOnce, let one = try await group.next() { all.append(one) }
                group.addTask { try await small() }
            }
            return try await group.reduce(into: all) { $0.append($1) }
        }
    }

    /// Reads the rest of a transfer of the large file.
    func expectLarge(
        _ bytes: inout TransferBytes.Iterator, after start: ByteChunk? = nil,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        var (length, stream) = (0, SHA256Stream())
        var next = start
        if next == nil { next = try await bytes.next() }
        while let chunk = next {
            length += chunk.count
            stream.update(chunk)
            next = try await bytes.next()
        }
        #expect(length == PeerInstance.large.length, sourceLocation: location)
        #expect(stream.hex == PeerInstance.large.sha256, sourceLocation: location)
    }

    // MARK: Whole scenarios

    func getsLarge() async throws {
        let transfer = session.transfer(request(.get, "/large.bin"))
        var bytes = transfer.bytes.makeAsyncIterator()
        try await expectLarge(&bytes)
        #expect(transfer.metrics?.version == route.version)
        #expect(transfer.metrics?.responseBodyBytes == Int64(PeerInstance.large.length))
        #expect(transfer.metrics?.tlsVersion == (route.isSecure ? "TLSv1.3" : nil))
    }

    func asksForHead() async throws {
        let response = try await response(.head, "/large.bin")
        #expect(response.status == .ok)
        #expect(response.head.contentLength == Int64(PeerInstance.large.length))
        #expect(response.value.isEmpty)
        #expect(try await small().isConnectionReused)
    }

    /// Sends a body to where it is stored, and compares the digests.
    func stores(
        _ pattern: PatternBody, as body: RequestBody? = nil, by method: Curlew.Method = .put,
        in folder: String = "/upload", fields: HeaderFields = [:]
    ) async throws {
        let name = UUID().uuidString
        let body = body ?? .bytes(pattern.bytes)
        let response = try await response(method, "\(folder)/\(name)", fields: fields, body: body)
        #expect(response.status == .created)
        #expect(response.metrics.version == route.version)
        #expect(response.metrics.requestBodyBytes == Int64(pattern.length))
        let stored = try server.takeUpload(name)
        #expect(stored.length == pattern.length)
        #expect(stored.sha256 == pattern.sha256)
    }

    /// Sends a body to where it is sent back, and compares the digests.
    func echoes(
        _ pattern: PatternBody, as body: RequestBody? = nil, by method: Curlew.Method = .post
    ) async throws {
        let response = try await response(method, "/echo", body: body ?? .bytes(pattern.bytes))
        #expect(response.status == .ok)
        #expect(response.metrics.version == route.version)
        #expect(response.metrics.requestBodyBytes == Int64(pattern.length))
        #expect(response.value.count == pattern.length)
        #expect(SHA256Stream.hex(of: response.value) == pattern.sha256)
    }

    /// So many at once share one connection from the start.
    ///
    /// More than 100 would not: libcurl's own limit.
    func multiplexes(_ count: Int) async throws {
        let all = try await small(times: count, atOnce: count)
        #expect(all.count == count)
        #expect(Set(all.map(\.localAddress)).count == 1)
        #expect(all.count { !$0.isConnectionReused } == 1)
    }

    /// An upload that is refused by its head: the answer comes with its body, promptly, and others are not disturbed.
    func isRefusedEarly(_ path: String, _ body: RequestBody, sends: ClosedRange<Int64>, fields: HeaderFields = [:])
        async throws
    {
        try await small()
        let response = try await response(.put, path, fields: fields, body: body)
        #expect(response.status == .contentTooLarge)
        #expect(String(decoding: response.value, as: UTF8.self).contains("413 Request Entity Too Large"))
        #expect(sends.contains(response.metrics.requestBodyBytes), "\(response.metrics.requestBodyBytes)")
        #expect(response.metrics.total < .seconds(5))
        try await small()
    }

    /// Others go on over the connection of a download that is held, which then ends as if nothing had been.
    func othersRunWhilePaused() async throws {
        let large = session.transfer(request(.get, "/large.bin"))
        var bytes = large.bytes.makeAsyncIterator()
        let first = try await bytes.next()
        large.pause()
        let all = try await small(times: 100, atOnce: 10)
        #expect(all.count == 100)
        #expect(large.state == .paused)
        large.resume()
        try await expectLarge(&bytes, after: first)
        #expect(Set(all.map(\.localAddress)) == [large.metrics?.localAddress ?? ""])
    }

    /// Others go on over the connection of a download whose reader stands still, which holds no more than its buffer.
    func othersRunBesideSlowReader() async throws {
        let large = session.transfer(request(.get, "/large.bin"))
        var bytes = large.bytes.makeAsyncIterator()
        let first = try await bytes.next()
        let all = try await small(times: 100, atOnce: 10)
        #expect(large.state == .running)
        #expect(large.currentProgress.received <= 2 << 20)
        try await expectLarge(&bytes, after: first)
        #expect(Set(all.map(\.localAddress)) == [large.metrics?.localAddress ?? ""])
    }

    /// A download that is cancelled midway takes nothing with it.
    func cancelledDownloadLeavesOthers() async throws {
        let large = session.transfer(request(.get, "/large.bin"))
        var bytes = large.bytes.makeAsyncIterator()
        let first = try await bytes.next()
        let victim = session.transfer(request(.get, "/large.bin"))
        let error = await #expect(throws: NetworkError.self) {
            for try await _ in victim.bytes { victim.cancel() }
        }
        #expect(error?.kind == .cancelled)
        #expect(error?.phase == .receiving)
        let next = try await small()
        try await expectLarge(&bytes, after: first)
        #expect(victim.metrics?.localAddress == large.metrics?.localAddress)
        #expect(next.localAddress == large.metrics?.localAddress)
    }

    /// An upload that is cancelled midway takes nothing with it.
    func cancelledUploadLeavesOthers(_ method: Curlew.Method, _ path: String) async throws {
        let first = try await small()
        let gate = Gate()
        var source = ChunkSource(body: PatternBody(seed: 3, length: 64 << 20))
        source.hold = (index: 16, gate: gate)
        let body = RequestBody.stream(source, length: Int64(source.body.length))
        let victim = session.transfer(request(method, path, body: body)).start()
        await session.waitUntil(victim, has: 256 << 10, \.sent)
        let beside = try await small()
        victim.cancel()
        let error = try await networkError { try await victim.value }
        #expect(error.kind == .cancelled)
        #expect(error.phase == .sending)
        let after = try await small(times: 20, atOnce: 5)
        #expect(victim.metrics?.localAddress == first.localAddress)
        #expect(beside.localAddress == first.localAddress)
        #expect(Set(after.map(\.localAddress)) == [first.localAddress])
        gate.open()
    }
}
