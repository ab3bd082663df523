// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Bandwidth limits: a limited transfer is slower, but complete.
@Suite(.timeLimit(.minutes(5)))
struct BandwidthTests {
    private static let body = PatternBody(seed: 5, length: 300_000)

    private func limited(_ limit: Request.BandwidthLimit) -> Session { Session { $0.limits.bandwidth = limit } }

    /// The minimum time for so many bytes, less a credit of 100 ms and one chunk that is transferred in advance.
    private func least(_ bytes: Int, at rate: Int) -> Duration {
        .milliseconds(Int64(Double(bytes - min(rate / 20, 64 << 10)) / Double(rate) * 1000) - 101)
    }

    private func time(_ operation: () async throws -> Void) async rethrows -> Duration {
        try await ContinuousClock().measure { try await operation() }
    }

    @Test(arguments: [false, true], [false, true])
    func downloadLimitSlowsTheResponse(ofTheSession: Bool, streamed: Bool) async throws {
        let server = try MockServer { _ in .pattern(Self.body) }
        let limit = Request.BandwidthLimit(download: 600_000)
        let session = limited(ofTheSession ? limit : Request.BandwidthLimit())
        var request = Request(server.url("/"))
        if !ofTheSession { request.options.bandwidth = limit }
        let transfer = session.transfer(request)
        var data = Data()
        let spent = try await time {
            if streamed {
                for try await chunk in transfer.bytes { data.append(contentsOf: chunk) }
            } else {
                data = try await transfer.value
            }
        }
        #expect(Array(data) == Self.body.bytes)
        #expect(spent >= least(300_000, at: 600_000))
        #expect(server.connectionCount == 1)
    }

    @Test(arguments: ["bytes", "stream", "endless"], [false, true])
    func uploadLimitSlowsTheBody(of kind: String, ofTheSession: Bool) async throws {
        let server = try MockServer { _ in .text("thanks") }
        let limit = Request.BandwidthLimit(upload: 600_000)
        let session = limited(ofTheSession ? limit : Request.BandwidthLimit())
        let chunks = ChunkSource(body: Self.body)
        let body: RequestBody =
            switch kind {
            case "bytes": .bytes(Self.body.bytes)
            case "stream": .stream(chunks, length: 300_000)
            default: .stream(chunks)
            }
        var request = Request(.post, server.url("/"), body: body)
        if !ofTheSession { request.options.bandwidth = limit }
        let spent = try await time { _ = try await session.data(for: request) }
        let seen = try #require(server.requests.first)
        #expect(seen.isBodyComplete && seen.bodySHA256 == Self.body.sha256 && server.violations.isEmpty)
        #expect(spent >= least(300_000, at: 600_000))
    }

    @Test func uploadAndDownloadLimitsApplyTogether() async throws {
        let server = try MockServer { _ in .pattern(Self.body) }
        let session = limited(Request.BandwidthLimit(upload: 1_000_000, download: 1_000_000))
        let request = Request(.post, server.url("/"), body: .bytes(Self.body.bytes))
        let spent = try await time {
            let data = try await session.data(for: request).0
            #expect(Array(data) == Self.body.bytes)
        }
        #expect(spent >= least(300_000, at: 1_000_000) * 2)
    }

    @Test func transfersShareTheSessionsLimit() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 5, length: 100_000)) }
        let session = limited(Request.BandwidthLimit(download: 1_000_000))
        let spent = try await time {
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 { group.addTask { try await session.data(for: Request(server.url("/"))).0.count } }
                for try await count in group { #expect(count == 100_000) }
            }
        }
        #expect(spent >= least(800_000 - 8 * 50_000, at: 1_000_000))
    }

    @Test func smallBodiesCountTowardsTheLimit() async throws {
        let server = try MockServer { _ in .text("ok") }
        let session = limited(Request.BandwidthLimit(upload: 100_000))
        let spent = try await time {
            for _ in 0..<10 {
                _ = try await session.data(
                    for: Request(.post, server.url("/"), body: .bytes(Self.body.bytes.prefix(5000))))
            }
        }
        #expect(server.requests.allSatisfy { $0.bodyLength == 5000 })
        #expect(spent >= least(50_000, at: 100_000))
    }

    @Test func http2StreamsAreLimited() async throws {
        let scene = try HTTP2Scene(configure: {
            $0.limits.bandwidth = Request.BandwidthLimit(upload: 600_000, download: 600_000)
        }) {
            _ in .afterRequest.respond(200, body: Self.body.bytes)
        }
        let spent = try await time {
            let data = try await scene.session.data(for: scene.post(.bytes(Self.body.bytes))).0
            #expect(Array(data) == Self.body.bytes)
        }
        #expect(spent >= least(300_000, at: 600_000) * 2)
        #expect(scene.server.violations == [])
    }

    @Test func bandwidthWaitDoesNotTriggerTheIdleTimeout() async throws {
        let server = try MockServer { _ in .pattern(PatternBody(seed: 1, length: 2048)) }
        let session = Session { $0.timeouts.idle = .seconds(1) }
        // At least 1 KiB is received at once, and 512 bytes are sent: each wait takes two seconds.
        var request = Request(server.url("/"))
        request.options = [.bandwidth(download: 512)]
        #expect(try await session.data(for: request).0.count == 2048)
        var post = Request(.post, server.url("/"), body: .bytes(Self.body.bytes.prefix(1024)))
        post.options = [.bandwidth(upload: 256)]
        #expect(try await session.data(for: post).0.count == 2048)
    }

    @Test func idleTimeoutStillAppliesUnderALimit() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .pattern(Self.body).fault(.stall(gate), at: .body(8000)) }
        var request = Request(server.url("/"))
        // At the first check of the idle timeout, the bandwidth limit holds the transfer.
        request.options = [.bandwidth(download: 20_000), .timeouts(Timeouts(idle: .milliseconds(300)))]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .timedOut && error.message.contains("idle"))
        gate.open()
    }

    @Test func smallStreamsDoNotStarveALargeTransfer() async throws {
        let server = try MockServer { $0.path == "/" ? .pattern(Self.body) : .text("small") }
        let session = limited(Request.BandwidthLimit(download: 400_000))
        let large = session.transfer(Request(server.url("/"))).start()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    let data = try await session.data(for: Request(server.url("/\(number)"))).0
                    #expect(data.count == 5)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await large.value.count == 300_000)
    }

    @Test func limitedTransferCanBePausedAndCancelled() async throws {
        let server = try MockServer { _ in .pattern(Self.body) }
        let session = limited(Request.BandwidthLimit(download: 1))
        let transfer = session.transfer(Request(server.url("/"))).start()
        await session.waitUntil(transfer, has: 1, \.received)
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        transfer.resume()
        #expect(await session.transfers.map(\.state) == [.running])
        #expect(transfer.currentProgress.received < 100_000)
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .cancelled)
        #expect(await session.transfers.isEmpty)
    }

    @Test func totalTimeoutIncludesTheBandwidthWait() async throws {
        let server = try MockServer { _ in .pattern(Self.body) }
        var request = Request(server.url("/"))
        request.options = [.bandwidth(download: 1000), .timeout(.milliseconds(300))]
        let error = try await networkError { try await Session().data(for: request) }
        #expect(error.kind == .timedOut && error.message.contains("300 ms (`options.timeouts.total`)"))
    }

    @Test func sessionShutdownEndsLimitedTransfers() async throws {
        let server = try MockServer { _ in .pattern(Self.body) }
        let session = limited(Request.BandwidthLimit(download: 1))
        let transfer = session.transfer(Request(server.url("/"))).start()
        await session.waitUntil(transfer, has: 1, \.received)
        try await session.shutdown(.immediate)
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .sessionClosed)
    }

    @Test func redirectKeepsTheBandwidthLimit() async throws {
        let server = try MockServer { request in
            request.path == "/" ? .status(307).field("Location", "/there") : .text("ok")
        }
        var request = Request(.post, server.url("/"), body: .bytes(Self.body.bytes.prefix(40_000)))
        request.options = [.bandwidth(upload: 200_000)]
        #expect(try await Session().data(for: request).0 == Data("ok".utf8))
        #expect(server.requests.last?.bodyLength == 40_000)
    }

    @Test func invalidBandwidthLimitsAreRefused() async throws {
        let limits: [(Request.BandwidthLimit, String)] = [
            (Request.BandwidthLimit(upload: 0), "upload"),
            (Request.BandwidthLimit(upload: 1, download: -1), "download"),
        ]
        for (limit, way) in limits {
            let session = try await networkError {
                try Session.Configuration { $0.limits.bandwidth = limit }.validate()
            }
            #expect(session.kind == .invalidRequest && session.message.contains("limits.bandwidth.\(way)"))
            var request = Request("http://127.0.0.1:1/")
            request.options.bandwidth = limit
            let refusal = try await networkError { try await Session().data(for: request) }
            #expect(refusal.kind == .invalidRequest && refusal.message.contains(way))
        }
    }

    @Test func bandwidthLimitRoundTripsThroughJSON() throws {
        let options: Request.Options = [.bandwidth(upload: 5, download: 7), .label("x")]
        let written = try JSONEncoder().encode(options)
        #expect(try JSONDecoder().decode(Request.Options.self, from: written) == options)
        #expect(options.merging(.bandwidth(upload: 9)).bandwidth == Request.BandwidthLimit(upload: 9, download: 7))
        #expect(
            Request.Options.bandwidth(upload: 9).merging(.label("y")).bandwidth == Request.BandwidthLimit(upload: 9))
        let configuration = Session.Configuration {
            $0.limits.bandwidth = Request.BandwidthLimit(download: .kibibytes(1))
        }
        let data = try JSONEncoder().encode(configuration)
        #expect(try JSONDecoder().decode(Session.Configuration.self, from: data) == configuration)
        for json in [#"{"download":0}"#, #"{"upload":-1}"#, #"{"upload":"fast"}"#] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(Request.BandwidthLimit.self, from: Data(json.utf8))
            }
        }
    }
}
