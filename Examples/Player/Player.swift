// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Player plays a file while a media cache downloads it, through the loopback endpoint that a media player would open.
//     Player https://example.com/film.mp4 DIRECTORY
// serves one file until the program is interrupted. Without arguments it plays from a server of its own, seeks while
// the file is downloading, and checks every byte.

import Curlew
import CurlewMedia
import CurlewTesting
import FoundationEssentials
import Glibc

@main
struct Player {
    static func main() async {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch arguments.count {
            case 0: exit(try await Demonstration().run())
            case 2: try await serve(arguments[0], storing: arguments[1])
            default:
                print("usage: Player [URL DIRECTORY]")
                exit(2)
            }
        } catch {
            print("Player: \(error)")
            exit(1)
        }
    }

    /// Prints the URL for a media player, and then the stored part once a second.
    private static func serve(_ url: String, storing directory: String) async throws {
        let cache = try await MediaCache(at: directory, session: Session())
        let endpoint = try MediaEndpoint(cache)
        let film = try await cache.media(for: Request(url))
        print("Open this in a media player: \(try endpoint.url(for: Request(url)))")
        for await _ in ticks() {
            let stored = film.storedRanges.reduce(Int64(0)) { $0 + Int64($1.count) }
            print("\(ByteCount.bytes(stored)) of \(film.length.map { "\(ByteCount.bytes($0))" } ?? "?")")
        }
    }

    private static func ticks() -> AsyncStream<Void> {
        AsyncStream {
            try? await Task.sleep(for: .seconds(1))
            return Task.isCancelled ? nil : ()
        }
    }
}

/// A demonstration with a local server whose download waits in the middle of the file.
private struct Demonstration {
    private static let film = PatternBody(seed: 29, length: 12 << 20)

    private let server: MockServer
    /// Opened when the player has seeked.
    private let gate = Gate()
    private let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-player-\(UUID())").path

    init() throws {
        let gate = gate
        server = try MockServer { request in
            let response = RangeResource(Self.film).response(to: request).field("Content-Type", "video/mp4")
            // The download from the start waits after 3 MiB until the player has seeked.
            let isStart = request.field("Range")?.hasPrefix("bytes=0-") ?? true
            return isStart ? response.fault(.stall(gate), at: .body(3 << 20)) : response
        }
    }

    /// Returns the status of the program: 0 if all results are as expected.
    func run() async throws -> Int32 {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var unexpected = 0
        func check(_ line: String, _ isExpected: Bool) {
            if !isExpected { unexpected += 1 }
            print("  " + line + (isExpected ? "" : " <- unexpected"))
        }
        let cache = try await MediaCache(at: folder, session: Session())
        let endpoint = try MediaEndpoint(cache)
        let request = Request(server.url("/film.mp4"))
        let url = try endpoint.url(for: request)
        let player = Session()
        print("A player opens \(endpoint.origin)/… while the film of 12 MiB is being downloaded:")

        check("plays the first 2 MiB", try await isRight(0..<(2 << 20), url, player))
        check(
            "seeks to 9 MiB, ahead of the download, and plays 1 MiB",
            try await isRight(9 << 20..<(10 << 20), url, player))
        let film = try await cache.media(for: request)
        let before = server.requests.count
        check(
            "seeks back to the start, from the disk",
            try await isRight(0..<(1 << 20), url, player) && server.requests.count == before)
        gate.open()
        check("plays the whole film", try await isRight(0..<Self.film.length, url, player))
        check("the film is stored: \(film.isComplete)", film.isComplete)
        let after = server.requests.count
        check(
            "plays it again without a request",
            try await isRight(0..<Self.film.length, url, player) && server.requests.count == after)
        for request in server.requests {
            print("  the server saw: \(request.method) \(request.field("Range") ?? "everything")")
        }
        await endpoint.close()
        await cache.close()
        print("\(unexpected) unexpected results")
        return unexpected == 0 ? 0 : 1
    }

    /// Requests a range as a player does; returns whether every byte is right.
    private func isRight(_ range: Range<Int>, _ url: String, _ player: Session) async throws -> Bool {
        var request = Request(url, fields: ["Range": "bytes=\(range.lowerBound)-\(range.upperBound - 1)"])
        request.options.statuses = [206]
        let (bytes, head) = try await player.data(for: request)
        return head.status == .partialContent && bytes.elementsEqual(Self.film.bytes(in: range))
    }
}
