// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Foundation
import Glibc
import Testing

@testable import CurlewMedia

/// Players that read a file through the endpoint.
@Suite(.timeLimit(.minutes(5)))
struct MediaEndpointTests {
    private static let small = MediaCache.Configuration(readAhead: .kibibytes(256), joinDistance: .kibibytes(64))
    private let player = Session { $0.retry = .never }

    /// Requests a URL, and returns the head and the body.
    private func get(
        _ url: String, _ fields: HeaderFields = [:], method: Curlew.Method = .get
    ) async throws -> (head: ResponseHead, body: [UInt8]) {
        let (data, head) = try await player.data(for: Request(method, url, fields: fields))
        return (head, Array(data))
    }

    @Test func playerGetsTheWholeFile() async throws {
        let bench = try MediaBench()
        let endpoint = try MediaEndpoint(await bench.cache())
        let url = try endpoint.url(for: Request(bench.url))
        let (head, body) = try await get(url)
        #expect(head.status == .ok && body == bench.body.bytes)
        #expect(head[.etag] == "\"1\"" && head[.acceptRanges] == "bytes" && head.contentLength == 3_000_000)
        #expect(head.contentType == "application/octet-stream")
        let (again, _) = try await get(url, method: .head)
        #expect(again.status == .ok && again.contentLength == 3_000_000)
        #expect(bench.ranges == ["whole"])
        await endpoint.close()
    }

    @Test(arguments: [
        ("bytes=1000-1999", 1000, 2000), ("bytes=2999000-", 2_999_000, 3_000_000), ("bytes=-500", 2_999_500, 3_000_000),
        ("bytes=2000000-2100000", 2_000_000, 2_100_001),
    ])
    func playerGetsARange(_ range: String, _ start: Int, _ end: Int) async throws {
        let bench = try MediaBench()
        let endpoint = try MediaEndpoint(await bench.cache(Self.small))
        let (head, body) = try await get(try endpoint.url(for: Request(bench.url)), [.range: range])
        #expect(head.status == .partialContent && body == bench.body.bytes(in: start..<end))
        #expect(head[.contentRange] == "bytes \(start)-\(end - 1)/3000000")
        await endpoint.close()
    }

    @Test func conditionsAndBadRangesAreAnswered() async throws {
        let bench = try MediaBench(1000)
        let endpoint = try MediaEndpoint(await bench.cache())
        let url = try endpoint.url(for: Request(bench.url))
        #expect(try await get(url, [.range: "bytes=5000-"]).head.status == .rangeNotSatisfiable)
        #expect(try await get(url, [.range: "bytes=5000-"]).head[.contentRange] == "bytes */1000")
        #expect(try await get(url, [.ifNoneMatch: "\"1\""]).head.status == .notModified)
        #expect(try await get(url, [.range: "bytes=0-1,5-6"]).body == bench.body.bytes)
        #expect(try await get(url, [.range: "bytes=0-1", .ifRange: "\"2\""]).body.count == 1000)
        #expect(try await get(url, [.range: "bytes=0-1", .ifRange: "\"1\""]).body.count == 2)
        let refused = try await get(url, method: .delete)
        #expect(refused.head.status == .methodNotAllowed && refused.head[.allow] == "GET, HEAD")
        #expect(try await get(endpoint.origin + "/nothing").head.status == .notFound)
        #expect(try await get(url + "x").head.status == .notFound)
        // All of these used one connection.
        #expect(endpoint.connectionCount == 1)
        await endpoint.close()
    }

    @Test func tokensAreRandomAndStable() async throws {
        let bench = try MediaBench(10)
        let endpoint = try MediaEndpoint(await bench.cache(), options: MediaEndpoint.Options(urls: 3))
        let urls = try (0..<3).map { try endpoint.url(for: Request(bench.server.url("/\($0)"))) }
        #expect(Set(urls).count == 3)
        #expect(urls.allSatisfy { $0.hasPrefix("http://127.0.0.1:\(endpoint.port)/") && $0.utf8.count > 50 })
        #expect(!urls[0].contains("\(bench.server.port)"))
        #expect(try endpoint.url(for: Request(bench.server.url("/1"))) == urls[1])
        // A further URL ends the oldest one.
        _ = try endpoint.url(for: Request(bench.server.url("/3")))
        #expect(try await get(urls[0]).head.status == .notFound)
        #expect(try await get(urls[1]).head.status == .ok)
        #expect(endpoint.remove(url: urls[1]))
        #expect(!endpoint.remove(url: urls[1]) && !endpoint.remove(url: "http://example.com/"))
        #expect(try await get(urls[1]).head.status == .notFound)
        #expect(throws: NetworkError.self) { try endpoint.url(for: Request(.post, bench.url)) }
        await endpoint.close()
    }

    @Test func otherHostsAreRefused() async throws {
        let bench = try MediaBench(10)
        let endpoint = try MediaEndpoint(await bench.cache())
        let path = try endpoint.url(for: Request(bench.url)).dropFirst(endpoint.origin.utf8.count)
        for host in ["evil.example:\(endpoint.port)", "evil.example", "127.0.0.1", "localhost:\(endpoint.port)", ""] {
            let text = await RawPlayer.exchange(
                "GET \(path) HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n", port: endpoint.port)
            #expect(text.hasPrefix("HTTP/1.1 421 "), "\(host): \(text)")
        }
        let whole = await RawPlayer.exchange(
            "GET http://evil.example\(path) HTTP/1.1\r\nHost: 127.0.0.1:\(endpoint.port)\r\nConnection: close\r\n\r\n",
            port: endpoint.port)
        #expect(whole.hasPrefix("HTTP/1.1 421 "))
        #expect(bench.ranges == [])
        await endpoint.close()
    }

    @Test(arguments: [
        ("GARBAGE\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 400), ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\nHost: a\r\nX: \(String(repeating: "x", count: 20_000))\r\n\r\n", 431),
        (String(repeating: "x", count: 40_000), 431),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 400),
    ])
    func malformedRequestsAreRefused(_ text: String, _ status: Int) async throws {
        let bench = try MediaBench(10)
        let endpoint = try MediaEndpoint(await bench.cache())
        let answer = await RawPlayer.exchange(text, port: endpoint.port)
        #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer)")
        #expect(answer.contains("Connection: close\r\n"))
        await endpoint.close()
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        let bench = try MediaBench(100)
        let endpoint = try MediaEndpoint(await bench.cache())
        let path = try endpoint.url(for: Request(bench.url)).dropFirst(endpoint.origin.utf8.count)
        let host = "Host: 127.0.0.1:\(endpoint.port)\r\n"
        let player = RawPlayer(port: endpoint.port)
        player.send(
            "GET \(path) HTTP/1.1\r\n\(host)Range: bytes=0-4\r\n\r\nHEAD \(path) HTTP/1.1\r\n\(host)\r\n"
                + "GET \(path) HTTP/1.1\r\n\(host)Range: bytes=5-9\r\nConnection: close\r\n\r\n")
        let bytes = await player.read()
        #expect(bytes.suffix(5) == bench.body.bytes(in: 5..<10)[...])
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.components(separatedBy: "HTTP/1.1 20").count == 4)
        await endpoint.close()
    }

    @Test func oldPlayerGetsAClosedConnection() async throws {
        let bench = try MediaBench(100)
        bench.change { $0.field("Range") == nil ? $1.chunked() : $1 }
        let endpoint = try MediaEndpoint(await bench.cache())
        let url = try endpoint.url(for: Request(bench.url))
        let path = url.dropFirst(endpoint.origin.utf8.count)
        let player = RawPlayer(port: endpoint.port)
        player.send("GET \(path) HTTP/1.0\r\nHost: 127.0.0.1:\(endpoint.port)\r\n\r\n")
        let bytes = await player.read()
        #expect(bytes.suffix(100) == bench.body.bytes[...])
        #expect(!String(decoding: bytes, as: UTF8.self).contains("chunked"))
        await endpoint.close()
    }

    @Test func fileOfUnknownLengthIsSentInChunks() async throws {
        let bench = try MediaBench(1_500_000)
        bench.change { $0.field("Range") == nil ? $1.chunked() : $1 }
        let endpoint = try MediaEndpoint(await bench.cache())
        let url = try endpoint.url(for: Request(bench.url))
        let (head, body) = try await get(url, [.range: "bytes=5-9"])
        #expect(head.status == .ok && head[.transferEncoding] == "chunked" && body == bench.body.bytes)
        // The length is known now.
        #expect(try await get(url, [.range: "bytes=5-9"]).head.status == .partialContent)
        await endpoint.close()
    }

    // MARK: Failures

    @Test func failureBeforeTheHeadIsAStatus() async throws {
        let bench = try MediaBench(1000)
        let cache = try await bench.cache()
        let endpoint = try MediaEndpoint(cache)
        let url = try endpoint.url(for: Request(bench.url))
        bench.change { _, _ in .text("none", status: 404) }
        #expect(try await get(url).head.status == 502)
        bench.change { $1.fault(.close, at: .start) }
        #expect(try await get(url).head.status == 502)
        bench.change { $1.fault(.close, at: .body(0)) }
        #expect(try await get(url).head.status == 502)
        bench.change { _, _ in .silence }
        var slow = Request(bench.url, fields: [.accept: "video/mp4"])
        slow.options.timeouts = Timeouts(total: .milliseconds(50))
        #expect(try await get(try endpoint.url(for: slow)).head.status == 504)
        bench.change { $1 }
        #expect(try await get(url).body == bench.body.bytes)
        await cache.close()
        #expect(try await get(url).head.status == 503)
        await endpoint.close()
    }

    @Test func failureAfterTheHeadEndsTheConnection() async throws {
        let bench = try MediaBench()
        bench.change { request, response in
            request.field("Range") == nil ? response.fault(.close, at: .body(1_500_000)) : .status(500)
        }
        let endpoint = try MediaEndpoint(await bench.cache())
        let url = try endpoint.url(for: Request(bench.url))
        let error = await #expect(throws: NetworkError.self) { _ = try await get(url) }
        #expect(error?.kind == .connectionLost)
        bench.change { $1 }
        #expect(try await get(url).body == bench.body.bytes)
        await endpoint.close()
    }

    @Test func changedFileIsSentConsistently() async throws {
        let bench = try MediaBench(1_000_000)
        let endpoint = try MediaEndpoint(await bench.cache(Self.small))
        let url = try endpoint.url(for: Request(bench.url))
        _ = try await get(url, [.range: "bytes=0-1000"])
        bench.replace(seed: 99, length: 900_000, tag: "\"2\"")
        let (head, body) = try await get(url, [.range: "bytes=800000-"])
        #expect(body == bench.body.bytes(in: 800_000..<900_000))
        #expect(head[.etag] == "\"2\"" && head[.contentRange] == "bytes 800000-899999/900000")
        #expect(try await get(url).body == bench.body.bytes)
        await endpoint.close()
    }

    // MARK: Limits

    @Test func silentConnectionIsClosed() async throws {
        let bench = try MediaBench(10)
        let options = MediaEndpoint.Options(idleTimeout: .milliseconds(50))
        let endpoint = try MediaEndpoint(await bench.cache(), options: options)
        #expect(await RawPlayer.exchange("", port: endpoint.port) == "")
        // Half a head gets a status.
        #expect(await RawPlayer.exchange("GET / HT", port: endpoint.port).hasPrefix("HTTP/1.1 408 "))
        await endpoint.close()
    }

    @Test func slowPlayerHoldsTheTransferAndIsClosed() async throws {
        let bench = try MediaBench(60_000_000)
        let cache = try await bench.cache(Self.small)
        let options = MediaEndpoint.Options(idleTimeout: .milliseconds(300))
        let endpoint = try MediaEndpoint(cache, options: options)
        let path = try endpoint.url(for: Request(bench.url)).dropFirst(endpoint.origin.utf8.count)
        let media = try await bench.media(cache)
        let player = RawPlayer(port: endpoint.port, receiveBuffer: 4096)
        player.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(endpoint.port)\r\n\r\n")
        // The player reads nothing, so the endpoint closes the connection and the transfer stops.
        await bench.wait { media.storedRanges != [] && endpoint.connectionCount == 0 }
        let stored = media.storedRanges.reduce(0) { $0 + $1.count }
        #expect(stored < 30_000_000)
        withExtendedLifetime(player) {}
        await endpoint.close()
    }

    @Test func playerThatLeavesStopsTheTransfer() async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100)) }
        let endpoint = try MediaEndpoint(await bench.cache())
        let path = try endpoint.url(for: Request(bench.url)).dropFirst(endpoint.origin.utf8.count)
        do {
            let player = RawPlayer(port: endpoint.port)
            player.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(endpoint.port)\r\n\r\n")
            await gate.waitUntilReached()
        }
        await bench.server.waitUntil(openConnections: 0)
        await bench.wait { endpoint.connectionCount == 0 }
        await endpoint.close()
    }

    @Test func connectionsBeyondTheLimitWait() async throws {
        let bench = try MediaBench(1000)
        let endpoint = try MediaEndpoint(await bench.cache(), options: MediaEndpoint.Options(connections: 2))
        let path = try endpoint.url(for: Request(bench.url)).dropFirst(endpoint.origin.utf8.count)
        var idle: [RawPlayer] = [RawPlayer(port: endpoint.port), RawPlayer(port: endpoint.port)]
        await bench.wait { endpoint.connectionCount == 2 }
        let third = RawPlayer(port: endpoint.port)
        third.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(endpoint.port)\r\nConnection: close\r\n\r\n")
        #expect(bench.ranges == [])
        idle.removeLast()
        #expect(await third.read().suffix(1000) == bench.body.bytes[...])
        #expect(idle.count == 1)
        await endpoint.close()
    }

    @Test(arguments: [true, false])
    func endpointEndsWithAllConnections(_ isReleased: Bool) async throws {
        let bench = try MediaBench()
        let gate = Gate()
        bench.change { $1.fault(.stall(gate), at: .body(100_000)) }
        let cache = try await bench.cache()
        var endpoint: MediaEndpoint? = try MediaEndpoint(cache)
        let port = try #require(endpoint?.port)
        let path = try #require(try endpoint?.url(for: Request(bench.url))).dropFirst("http://127.0.0.1:\(port)".count)
        let (waiting, idle) = (RawPlayer(port: port), RawPlayer(port: port))
        waiting.send("GET \(path) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n")
        await gate.waitUntilReached()
        if !isReleased { await endpoint?.close() }
        endpoint = nil
        #expect(await idle.read() == [])
        #expect(await waiting.read().count < 110_000)
        await bench.server.waitUntil(openConnections: 0)
        let error = await #expect(throws: NetworkError.self) { _ = try await get("http://127.0.0.1:\(port)\(path)") }
        #expect(error?.kind == .cannotConnect)
    }

    // MARK: Players

    @Test func readersAndPlayersShareAThrottledFile() async throws {
        let bench = try MediaBench(2_000_000)
        bench.change { $1.dripping(bytes: 100_000, every: .milliseconds(2)) }
        let cache = try await bench.cache(Self.small)
        let endpoint = try MediaEndpoint(cache)
        let url = try endpoint.url(for: Request(bench.url))
        let media = try await bench.media(cache)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<6 {
                group.addTask {
                    var chance = SeededGenerator(UInt64(reader))
                    for _ in 0..<4 {
                        let start = Int.random(in: 0..<2_000_000, using: &chance)
                        let end = min(start + Int.random(in: 1..<300_000, using: &chance), 2_000_000)
                        if reader.isMultiple(of: 2) {
                            try await bench.check(media, Int64(start)..<Int64(end))
                        } else {
                            let (head, body) = try await get(url, [.range: "bytes=\(start)-\(end - 1)"])
                            #expect(head.status == .partialContent && body == bench.body.bytes(in: start..<end))
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await get(url).body == bench.body.bytes)
        await endpoint.close()
    }

    private static let curl: String? = {
        let paths: [String] = ["/usr/bin/curl", "/usr/local/bin/curl"]
        return paths.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    @Test(.enabled(if: curl != nil, "curl is not installed"), arguments: ["", "1000000-1999999", "-5000", "2500000-"])
    func curlReadsRangesByTheEndpoint(_ range: String) async throws {
        print("peer-test: curl curlReadsRangesByTheEndpoint")
        let bench = try MediaBench()
        bench.change { $1.dripping(bytes: 200_000, every: .milliseconds(2)) }
        let endpoint = try MediaEndpoint(await bench.cache(Self.small))
        let url = try endpoint.url(for: Request(bench.url))
        let path = bench.directory.path + "/out"
        let arguments = ["-sS", "--fail", "--noproxy", "*", "-o", path] + (range.isEmpty ? [] : ["-r", range]) + [url]
        let status = await withCheckedContinuation { (continuation: CheckedContinuation<Int32, Never>) in
            Thread.detachNewThread {
                let process = Process()
                process.executableURL = Self.curl.map { URL(filePath: $0) }
                process.arguments = arguments
                do { try process.run() } catch { return continuation.resume(returning: -1) }
                process.waitUntilExit()
                continuation.resume(returning: process.terminationStatus)
            }
        }
        #expect(status == 0)
        let expected =
            switch range {
            case "1000000-1999999": 1_000_000..<2_000_000
            case "-5000": 2_995_000..<3_000_000
            case "2500000-": 2_500_000..<3_000_000
            default: 0..<3_000_000
            }
        #expect(try [UInt8](Data(contentsOf: URL(filePath: path))) == bench.body.bytes(in: expected))
        await endpoint.close()
    }
}
