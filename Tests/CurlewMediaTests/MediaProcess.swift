// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Foundation
import Glibc

/// A run of curlew-media.
enum MediaProcess {
    /// The output of a process and its status: 0, another exit status, or minus the number of a signal.
    struct End: Sendable {
        let lines: [String]
        let status: Int32

        /// Returns the result of a command; nil if the process has not finished it.
        func result(of command: String) -> String? {
            let start = command + ": "
            return lines.last { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) }
        }
    }

    /// The environment variables that a program inherits; others might change its behaviour.
    private static let keptVariables: Set = ["PATH", "LD_LIBRARY_PATH", "TSAN_OPTIONS", "ASAN_OPTIONS", "LSAN_OPTIONS"]

    /// Runs commands in a process of their own, and waits for its end.
    static func run(
        _ directory: String, _ url: String, seed: UInt64, length: Int, _ commands: [String],
        environment added: [String: String] = [:]
    ) async throws -> End {
        let (process, output) = (Process(), Pipe())
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        process.executableURL = URL(fileURLWithPath: own).deletingLastPathComponent()
            .appendingPathComponent("curlew-media")
        process.arguments = [directory, url, "\(seed)", "\(length)"] + commands
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        // The program writes no coverage: a killed one would leave a broken file, which fails the whole report.
        process.environment = ProcessInfo.processInfo.environment
            .filter { keptVariables.contains($0.key) }
            .merging(["LLVM_PROFILE_FILE": "/dev/null"]) { $1 }
            .merging(added) { $1 }
        let (results, continuation) = AsyncStream.makeStream(of: End.self)
        // A separate thread, because reading blocks and a task must not block its thread.
        Thread.detachNewThread {
            defer { continuation.finish() }
            do { try process.run() } catch {
                continuation.yield(End(lines: ["curlew-media cannot be started: \(error)"], status: 127))
                return
            }
            let data = output.fileHandleForReading.readDataToEndOfFile()
            process.waitUntilExit()
            let isKilled = process.terminationReason == .uncaughtSignal
            continuation.yield(
                End(
                    lines: String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init),
                    status: isKilled ? -process.terminationStatus : process.terminationStatus))
        }
        for await end in results { return end }
        return End(lines: [], status: -1)
    }
}
