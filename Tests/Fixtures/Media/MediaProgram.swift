// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-media is a process for tests that kill it while it uses a media cache, or that measure its memory. It runs the
// commands of its arguments, and prints a line for each: the command and "ok", its result, or "failed" and the error.

import CKillPoint
import Curlew
import CurlewMedia
import CurlewTesting
import FoundationEssentials
import Glibc

@main
struct MediaProgram {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    private let directory: String
    private let url: String
    private let body: PatternBody
    private var cache: MediaCache?

    /// The arguments are DIRECTORY, URL, the seed and the length of the file's pattern, and commands.
    static func main() async {
        let arguments = CommandLine.arguments
        guard arguments.count > 5, let seed = UInt64(arguments[3]), let length = Int(arguments[4]) else {
            say("usage: curlew-media DIRECTORY URL SEED LENGTH COMMAND…")
            exit(2)
        }
        var program = MediaProgram(
            directory: arguments[1], url: arguments[2], body: PatternBody(seed: seed, length: length))
        for command in arguments[5...] {
            do {
                say("\(command): \(try await program.run(command.split(separator: " ").map(String.init)))")
            } catch {
                say("\(command): failed \(error)")
            }
        }
    }

    private init(directory: String, url: String, body: PatternBody) {
        (self.directory, self.url, self.body) = (directory, url, body)
    }

    /// Writes a line at once, without buffering.
    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    private mutating func run(_ words: [String]) async throws -> String {
        let numbers = words.dropFirst().compactMap { Int64($0) }
        switch (words.first ?? "", numbers.count) {
        case ("open", 0):
            let configuration = MediaCache.Configuration(readAhead: .kibibytes(128), joinDistance: .bytes(0))
            let session = Session { $0.retry = .never }
            cache = try await MediaCache(at: directory, session: session, configuration: configuration)
        case ("close", 0):
            await cache?.close()
            cache = nil
        case ("read", 2): try await read(numbers[0]..<numbers[1])
        case ("fill", 0): try await media().fill()
        case ("stored", 0): return try await "\(media().storedRanges)"
        case ("remove", 0): return try await "\(opened().remove(Request(url)))"
        case ("memory", 0): return try peak()
        case ("steps", 0): return "\(kill_point_steps())"
        default: throw Failed(description: "there is no such command")
        }
        return "ok"
    }

    private func opened() throws -> MediaCache {
        guard let cache else { throw Failed(description: "the cache is not open") }
        return cache
    }

    private func media() async throws -> MediaCache.Media { try await opened().media(for: Request(url)) }

    /// Reads a range and checks its bytes.
    private func read(_ range: Range<Int64>) async throws {
        var position = Int(range.lowerBound)
        for try await chunk in try await media().bytes(range) {
            guard chunk.elementsEqual(body.bytes(in: position..<position + chunk.count)) else {
                throw Failed(description: "wrong bytes at \(position)")
            }
            position += chunk.count
        }
        guard position == range.upperBound else { throw Failed(description: "the file ends at \(position)") }
    }

    /// Returns the largest size of the process in memory so far, in KiB.
    private func peak() throws -> String {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return String(line?.split(separator: " ").dropFirst().first ?? "unknown")
    }
}
