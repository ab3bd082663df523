// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import Foundation
import Testing

@testable import Curlew

/// Kills a process with a store at every step, as `kill -9` does, and starts it again until all downloads are complete.
@Suite struct StoreKillTests {
    @Test func killAtEveryFileChangeLosesNoDownload() async throws {
        let steps = try await KillScene().lives().steps
        #expect(steps > 40)
        let lives = Lock(0)
        try await (0..<2 * (steps + 5)).forEachConcurrent(limit: 3) { index in
            let scene = try KillScene()
            let kill = ["KILL_AT": "\(index / 2 + 1)"].merging(index % 2 == 0 ? [:] : ["KILL_TORN": "1"]) { $1 }
            let count = try await scene.lives(kill).kills
            lives.withLock { $0 += count }
        }
        // The number of steps varies by how many changes are written at once: the fewer, the busier the machine.
        #expect(lives.withLock { $0 } >= steps * 3 / 2)
    }

    /// The resources on the server change after the first life, so that the downloads restart.
    @Test func killAtEveryStepOfARestartLosesNoDownload() async throws {
        let steps = try await KillScene(isSlow: true).lives().steps
        try await (0..<steps + 5).forEachConcurrent(limit: 3) { index in
            let scene = try KillScene(isSlow: true)
            guard try await !scene.live(["KILL_AT": "\(steps / 2)"]) else { return }
            scene.change()
            _ = try await scene.lives(["KILL_AT": "\(index + 1)"])
        }
    }

    @Test func killAtRandomMomentsLosesNoDownload() async throws {
        let clock = ContinuousClock()
        let time = try await clock.measure { _ = try await KillScene(isSlow: true).lives() }
        let most = UInt64(time / .microseconds(1))
        try await (0..<50).forEachConcurrent(limit: 3) { index in
            var chance = SeededChance(UInt64(index))
            let scene = try KillScene(isSlow: true)
            var kills = 0
            while kills < 4 {
                let after = chance.next() % most
                if try await scene.live(["KILL_AFTER": "\(after)"]) { break }
                kills += 1
            }
            _ = try await scene.lives()
        }
    }
}

/// Four downloads of one store, over several lives of a process.
private final class KillScene: Sendable {
    private struct State {
        var begun: Set<Int> = []
        var reported: Set<Int> = []
        /// The downloads whose report was followed by further output, so that the process had confirmed it.
        var acknowledged: Set<Int> = []
        /// The last line of output of the last life.
        var lastLine = ""
        /// How often the resources on the server have changed.
        var changes: UInt64 = 0
    }

    private static let lengths = [700_001, 50_000, 300_000, 4_000_000]
    private static let earlier = Array("what was there before".utf8)

    private let folder: Folder
    private let server: MockServer
    private let state: Lock<State>

    init(isSlow: Bool = false) throws {
        folder = try Folder()
        try FileManager.default.createDirectory(atPath: folder("files"), withIntermediateDirectories: false)
        // The first download has to choose another name.
        folder.write("files/0", Self.earlier)
        let state = Lock(State())
        self.state = state
        server = try MockServer { request in
            guard let index = Int(request.path.dropFirst()) else { return .status(404) }
            let changes = state.withLock { $0.changes }
            let answer = RangeResource(Self.body(index, after: changes), tag: "\"\(changes)\"").response(to: request)
            return isSlow ? answer.dripping(bytes: 32 << 10, every: .milliseconds(2)) : answer
        }
    }

    private static func body(_ number: Int, after changes: UInt64) -> PatternBody {
        PatternBody(seed: UInt64(number) + 77 + changes * 100, length: lengths[number])
    }

    /// Changes all resources on the server.
    func change() { state.withLock { $0.changes += 1 } }

    /// Whether the bytes are a complete resource, in its present or an earlier state.
    private func isWhole(_ number: Int, _ bytes: [UInt8]?) -> Bool {
        (0...state.withLock { $0.changes }).contains { Self.body(number, after: $0).bytes == bytes }
    }

    /// Runs one life that `kill` ends, if it is given, and one that ends by itself.
    func lives(_ kill: [String: String]? = nil) async throws -> (steps: Int, kills: Int) {
        var kills = 0
        if let kill, try await !live(kill) { kills += 1 }
        #expect(try await live([:]))
        let (reported, line) = state.withLock { ($0.reported, $0.lastLine) }
        #expect(reported == Set(Self.lengths.indices))
        #expect(folder.names(in: "files") == ["0", "0 (2)", "1", "2", "3"])
        return (Int(line.split(separator: " ").last ?? "") ?? 0, kills)
    }

    /// Runs the process and checks its output, its requests and its files; returns whether it ended by itself.
    func live(_ environment: [String: String]) async throws -> Bool {
        let (parts, placed, note) = (sizes(), placed(), noteOfPieces())
        let asked = server.requests.count
        let known = state.withLock { $0.begun.sorted() }
        let end = try await ChildProgram.run(
            "curlew-store",
            [
                folder.path, String(server.url("/").dropLast()), "\(Self.lengths.count)",
                known.map { "\($0)" }.joined(separator: ","),
            ],
            environment: environment)
        #expect(end.status == 0 || end.status == -9, "\(end)")
        for (index, line) in end.lines.enumerated() {
            let words = line.split(separator: " ", maxSplits: 3)
            guard words.count > 1, let number = Int(words[1]) else { continue }
            // Any line about a download proves that the download began.
            state.withLock { _ = $0.begun.insert(number) }
            #expect(words[0] != "failed", "\(line)")
            guard words[0] == "finished" else { continue }
            let bytes = try DiskFile.contents(of: String(words.last ?? ""), upTo: .max)
            #expect(words.count == 4 && isWhole(number, bytes), "\(line)")
            // A report may repeat only if every process so far was killed before it confirmed the report.
            let isAcknowledged = state.withLock { state in
                state.reported.insert(number)
                defer { if index < end.lines.count - 1 { state.acknowledged.insert(number) } }
                return state.acknowledged.contains(number)
            }
            #expect(!isAcknowledged, "\(line), reported again after its confirmation")
        }
        state.withLock { $0.lastLine = end.lines.last ?? $0.lastLine }
        if state.withLock({ $0.changes == 0 }) {
            check(server.requests.dropFirst(asked), after: parts, placed)
            check(server.requests.dropFirst(asked), after: note)
        }
        for name in folder.names(in: "files") { check(name) }
        return end.status == 0
    }

    /// Checks that no request asks for stored bytes.
    private func check(_ requests: ArraySlice<RecordedRequest>, after parts: [Int: Int], _ placed: Set<Int>) {
        for number in Self.lengths.indices {
            let asked = requests.filter { $0.path == "/\(number)" }.map { $0.field("Range") }
            let size = parts[number] ?? 0
            let isWhole = placed.contains(number)
            if number == 3, !isWhole { continue }
            #expect(asked.count <= (isWhole ? 0 : 1), "\(number): \(asked)")
            guard let range = asked.first, !isWhole else { continue }
            #expect(range == (size > 0 ? "bytes=\(size)-" : nil), "\(number), with \(size) stored bytes")
        }
    }

    /// Checks that no request asks for a stored piece.
    private func check(_ requests: ArraySlice<RecordedRequest>, after note: ResumeToken?) {
        for request in requests where request.path == "/3" {
            guard let start = request.field("Range").flatMap({ Int64($0.dropFirst(6).prefix { $0 != "-" }) }) else {
                #expect(note == nil, "the whole was requested again")
                continue
            }
            guard let note, let pieces = note.pieces else { continue }
            #expect(
                start >= note.offset && !pieces.contains { $0.contains(start) }, "\(start) of \(note.offset), \(pieces)"
            )
        }
    }

    /// The note of the download over several connections.
    private func noteOfPieces() -> ResumeToken? {
        let name = folder.names(in: "files").first { $0.hasPrefix("3") && $0.hasSuffix(".part.json") }
        let note = name.flatMap { folder.bytes("files/" + $0) }.flatMap {
            try? JSONDecoder().decode(ResumeToken.self, from: Data($0))
        }
        return note.flatMap { $0.offset > 0 ? $0 : nil }
    }

    /// Checks that a file with its final name is complete.
    private func check(_ name: String) {
        if name.contains(".part") { return }
        let bytes = folder.bytes("files/" + name)
        if name == "0" { return #expect(bytes == Self.earlier) }
        let number = name.first.flatMap { Int(String($0)) } ?? -1
        #expect(Self.lengths.indices.contains(number) && isWhole(number, bytes), "\(name)")
    }

    /// The numbers of the files with final names.
    private func placed() -> Set<Int> {
        Set(
            folder.names(in: "files").filter { !$0.contains(".part") && $0 != "0" }.compactMap {
                Int(String($0.prefix(1)))
            })
    }

    /// The sizes of the part files.
    private func sizes() -> [Int: Int] {
        var sizes: [Int: Int] = [:]
        for name in folder.names(in: "files") where name.hasSuffix(".part") {
            guard let number = Int(name.prefix(1)) else { continue }
            sizes[number] = folder.bytes("files/" + name)?.count
        }
        return sizes
    }
}

extension Folder {
    fileprivate func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self(folder))) ?? []).sorted()
    }
}
