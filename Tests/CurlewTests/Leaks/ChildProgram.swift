// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs a program from the directory of the test executable.
enum ChildProgram {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    /// The output of a program and its status: 0, another exit status, or minus the number of a signal.
    struct End: Sendable {
        let output: Data
        let status: Int32

        var lines: [String] {
            String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
        }
    }

    /// The environment variables that a program inherits; others might change its behaviour.
    ///
    /// `LD_LIBRARY_PATH` selects the libcurl to load; the last three name the suppressions of the sanitizers.
    private static let keptVariables: Set = ["PATH", "LD_LIBRARY_PATH", "TSAN_OPTIONS", "ASAN_OPTIONS", "LSAN_OPTIONS"]

    /// Returns the environment of a program: the inherited variables and those that a test adds.
    ///
    /// The program writes no coverage: a test may kill it while it writes, and one broken file fails the whole report.
    static func environment(adding added: [String: String] = [:]) -> [String: String] {
        ProcessInfo.processInfo.environment
            .filter { keptVariables.contains($0.key) }
            .merging(["LLVM_PROFILE_FILE": "/dev/null"]) { $1 }
            .merging(added) { $1 }
    }

    /// Runs a program and waits until it has ended.
    ///
    /// - Parameter environment: Variables in addition to the inherited ones.
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
        // With these variables alone libcurl uses no proxy and no roots except the given ones.
        process.environment = Self.environment(adding: environment)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A separate thread, because reading to the end blocks and a task must not block its thread.
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
