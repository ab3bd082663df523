// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a program that stands beside the tests.
enum ChildProgram {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// What a program printed, and how it ended: 0, another status, or minus the number of a signal.
    struct End: Sendable {
        let output: Data
        let status: Int32

        var lines: [String] {
            String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    /// The variables that a program keeps of the environment: the rest might change its behaviour.
    ///
    /// `LD_LIBRARY_PATH` says which libcurl runs; the last three, what sanitizers leave out.
    private static let keptVariables: Set = ["PATH", "LD_LIBRARY_PATH", "TSAN_OPTIONS", "ASAN_OPTIONS", "LSAN_OPTIONS"]

    /// The environment of a program: the kept variables, and those that a test adds.
    ///
    /// A program writes no coverage: a test may kill it while it writes, and one broken file fails the whole report.
    static func environment(adding added: [String: String] = [:]) -> [String: String] {
        ProcessInfo.processInfo.environment
            .filter { keptVariables.contains($0.key) }
            .merging(["LLVM_PROFILE_FILE": "/dev/null"]) { $1 }
            .merging(added) { $1 }
    }

    /// Waits until a program has ended.
    ///
    /// - Parameter environment: Joins the few variables that it gets.
    static func run(
        _ name: String, _ arguments: [String], environment: [String: String] = [:]
    ) async throws -> End {
        let process = Process()
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = URL(fileURLWithPath: own).deletingLastPathComponent()
        process.executableURL = folder.appendingPathComponent(name)
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        // Found before libcurl looks elsewhere: no proxy, no roots but those given.
        process.environment = Self.environment(adding: environment)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A thread of its own: reading to the end blocks, and a task's thread must not.
                Thread.detachNewThread {
                    do {
                        try process.run()
                        let data = output.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        let isKilled = process.terminationReason == .uncaughtSignal
                        let status = isKilled ? -process.terminationStatus : process.terminationStatus
                        continuation.resume(returning: End(output: data, status: status))
                    } catch {
                        continuation.resume(throwing: error)
                    }
                }
            }
        } onCancel: {
            if process.isRunning { process.terminate() }
        }
    }
}
