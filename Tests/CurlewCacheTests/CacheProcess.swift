// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Foundation
import Glibc

/// A process of curlew-cache, which ends when this object is released.
final class CacheProcess: Sendable {
    /// The output of a process and its status: 0, another exit status, or minus the number of a signal.
    struct End: Sendable {
        let lines: [String]
        let status: Int32

        /// Returns the result of a command; nil if the process has not finished it.
        func result(of command: String) -> String? {
            let start = command + ": "
            return lines.last { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
        }

        /// The number of steps that change files.
        var steps: Int { result(of: "steps").flatMap { Int($0) } ?? 0 }
    }

    /// The limit of the store, unless given.
    static let limit: Int64 = 430_000
    /// The environment variables that a program inherits; others might change its behaviour.
    private static let keptVariables: Set = ["PATH", "LD_LIBRARY_PATH", "TSAN_OPTIONS", "ASAN_OPTIONS", "LSAN_OPTIONS"]

    private let process: Process
    private let input: Pipe?
    private let lines: AsyncStream<String>
    private let status = Lock<Int32>(-1)

    /// Starts a process, which runs the given commands, or else those that ``ask(_:)`` sends.
    ///
    /// - Parameter added: Variables in addition to the inherited ones.
    init(
        _ directory: String, limit: Int64 = CacheProcess.limit, _ commands: [String] = [],
        environment added: [String: String] = [:]
    ) throws {
        let (process, output) = (Process(), Pipe())
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = URL(fileURLWithPath: own).deletingLastPathComponent()
        process.executableURL = folder.appendingPathComponent("curlew-cache")
        process.arguments = [directory, "\(limit)"] + commands
        input = commands.isEmpty ? Pipe() : nil
        if let input { process.standardInput = input } else { process.standardInput = FileHandle.nullDevice }
        process.standardOutput = output
        // The program writes no coverage: a killed one would leave a broken file, which fails the whole report.
        process.environment = ProcessInfo.processInfo.environment
            .filter { Self.keptVariables.contains($0.key) }
            .merging(["LLVM_PROFILE_FILE": "/dev/null"]) { $1 }
            .merging(added) { $1 }
        let (lines, continuation) = AsyncStream.makeStream(of: String.self)
        self.process = process
        self.lines = lines
        let status = status
        // A separate thread, because reading blocks and a task must not block its thread.
        Thread.detachNewThread {
            defer { continuation.finish() }
            do { try process.run() } catch {
                continuation.yield("curlew-cache cannot be started: \(error)")
                return
            }
            var rest: [UInt8] = []
            while true {
                let data = output.fileHandleForReading.availableData
                if data.isEmpty { break }
                rest += data
                while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: rest[..<end], as: UTF8.self))
                    rest.removeSubrange(...end)
                }
            }
            process.waitUntilExit()
            let isKilled = process.terminationReason == .uncaughtSignal
            status.withLock { $0 = isKilled ? -process.terminationStatus : process.terminationStatus }
        }
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// Runs commands in a process of their own, and waits for its end.
    static func run(
        _ directory: String, limit: Int64 = CacheProcess.limit, _ commands: [String],
        environment: [String: String] = [:]
    ) async throws -> End {
        let process = try CacheProcess(directory, limit: limit, commands, environment: environment)
        return await process.end()
    }

    /// Sends a command to a running process, and returns its result.
    func ask(_ command: String) async throws -> String {
        try input?.fileHandleForWriting.write(contentsOf: Data((command + "\n").utf8))
        guard let line = await lines.first(where: { _ in true }) else { return "the process has ended" }
        return line.hasPrefix(command + ": ") ? String(line.dropFirst(command.count + 2)) : line
    }

    /// Ends a process that has answered, as `kill -9` does.
    func killNow() async -> End {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        return await end()
    }

    /// Ends the input of the process, and waits for its end.
    func end() async -> End {
        try? input?.fileHandleForWriting.close()
        var all: [String] = []
        for await line in lines { all.append(line) }
        return End(lines: all, status: status.withLock { $0 })
    }
}
