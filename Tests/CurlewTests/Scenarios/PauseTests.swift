// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// `pause()` and `resume()`, and the states of a transfer.
@Suite(.timeLimit(.minutes(5)))
struct PauseTests {
    @Test func statesChangeFromIdleToFinished() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let first = session.transfer(Request(server.url("/1")))
        let second = session.transfer(Request(server.url("/2")))
        #expect(first.state == .idle && second.state == .idle)
        first.start()
        second.start()
        await gate.waitUntilReached()
        #expect(await session.transfers.map(\.state) == [.running, .queued])
        #expect(first.state == .running && second.state == .queued)
        first.pause()
        second.pause()
        #expect(first.state == .paused && second.state == .paused)
        #expect(await session.transfers.map(\.state) == [.paused, .paused])
        first.resume()
        second.resume()
        #expect(first.state == .running && second.state == .queued)
        gate.open()
        _ = try await first.value
        _ = try await second.value
        #expect(first.state == .finished && second.state == .finished)
        for transfer in [first, second] {
            transfer.pause()
            transfer.resume()
            #expect(transfer.state == .finished)
        }
        #expect(await session.transfers.isEmpty)
    }

    @Test func pausedDownloadHoldsBackTheServer() async throws {
        var options = MockServer.Options()
        options.socketBufferSize = 64 << 10
        let gate = Gate()
        let body = PatternBody(seed: 1, length: 20 << 20)
        let server = try MockServer(options: options) { _ in .pattern(body) }
        server.on("GET", "/held", .pattern(body).fault(.stall(gate), at: .body(100_000)))
        let session = Session()
        let transfer = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 100_000, \.received)
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        let before = transfer.currentProgress.received
        gate.open()
        // Meanwhile the server has enough time to send the same amount to another transfer on the same loop.
        #expect(try await session.data(for: Request(server.url("/"))).0.count == 20 << 20)
        #expect(server.bytesSent - (20 << 20) < 8 << 20)
        #expect(transfer.currentProgress.received <= before + 128 << 10)
        #expect(transfer.state == .paused)
        transfer.resume()
        #expect(try await transfer.value.sha256 == body.sha256)
    }

    @Test func pausedUploadStopsItsBodySource() async throws {
        let server = try MockServer { request in .text(request.bodySHA256) }
        let session = Session()
        let pattern = PatternBody(seed: 1, length: 20 << 20)
        let gate = Gate()
        let source = ChunkSource(body: pattern, hold: (4, gate))
        let transfer = session.transfer(Request(.post, server.url("/"), body: .stream(source))).start()
        await session.waitUntil(transfer, has: 4 * 65_536, \.sent)
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        gate.open()
        let other = ChunkSource(body: pattern)
        _ = try await session.data(for: Request(.post, server.url("/"), body: .stream(other)))
        #expect(await source.meter.pulls <= 4 + 10)
        #expect(transfer.currentProgress.sent == 4 * 65_536)
        transfer.resume()
        #expect(try await transfer.value == Data(pattern.sha256.utf8))
    }

    @Test func transferPausedBeforeStartOccupiesNoSlot() async throws {
        let server = try MockServer { request in .text(request.path) }
        let session = Session { $0.limits.transfersPerHost = 1 }
        let transfer = session.transfer(Request(server.url("/paused")))
        transfer.pause()
        #expect(transfer.state == .idle)
        transfer.start()
        #expect(await session.transfers.map(\.state) == [.paused])
        // The paused transfer does not occupy the only slot of the host.
        #expect(try await session.data(for: Request(server.url("/other"))).0 == Data("/other".utf8))
        #expect(server.requests.map(\.path) == ["/other"])
        transfer.resume()
        #expect(try await transfer.value == Data("/paused".utf8))
    }

    @Test func transferPausedInTheQueueIsOvertaken() async throws {
        let gate = Gate()
        let server = try MockServer { request in .text(request.path) }
        server.on("GET", "/held", .text("held").fault(.stall(gate), at: .start))
        let session = Session { $0.limits.transfersPerHost = 1 }
        let held = session.transfer(Request(server.url("/held"))).start()
        await gate.waitUntilReached()
        let paused = session.transfer(Request(server.url("/paused"))).start()
        let other = session.transfer(Request(server.url("/other"))).start()
        paused.pause()
        gate.open()
        _ = try await held.value
        #expect(try await other.value == Data("/other".utf8))
        #expect(paused.state == .paused)
        paused.resume()
        #expect(try await paused.value == Data("/paused".utf8))
        #expect(server.requests.map(\.path) == ["/held", "/other", "/paused"])
    }

    @Test func pauseHoldsATransferThatWaitsForTheHead() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("x").fault(.stall(gate), at: .start) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/"))).start()
        await gate.waitUntilReached()
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        gate.open()
        _ = try await session.data(for: Request(server.url("/")))
        #expect(transfer.state == .paused)
        transfer.resume()
        #expect(try await transfer.value == Data("x".utf8))
    }

    @Test func repeatedPauseAndResumeKeepsTheBodyIntact() async throws {
        let body = PatternBody(seed: 1, length: 8 << 20)
        let server = try MockServer { _ in .pattern(body) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        let switcher = Task {
            while transfer.state != .finished {
                transfer.pause()
                _ = await session.transfers
                transfer.resume()
                _ = await session.transfers
            }
        }
        #expect(try await transfer.value.sha256 == body.sha256)
        await switcher.value
    }

    @Test func readerOfPausedTransferWaits() async throws {
        let gate = Gate()
        let body = PatternBody(seed: 1, length: 4 << 20)
        let server = try MockServer { _ in .pattern(body).fault(.stall(gate), at: .body(1000)) }
        let session = Session()
        let transfer = session.transfer(Request(server.url("/")))
        let reader = Task { try await StreamRecord(transfer).body }
        await gate.waitUntilReached()
        await session.waitUntil(transfer, has: 1000, \.received)
        transfer.pause()
        #expect(await session.transfers.map(\.state) == [.paused])
        gate.open()
        transfer.resume()
        #expect(try await reader.value.sha256 == body.sha256)
    }
}
