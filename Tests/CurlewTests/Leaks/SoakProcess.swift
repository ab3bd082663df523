// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs the program `curlew-soak`, which stands beside the tests, and reads what it reports.
enum SoakProcess {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    static func run<Report: Decodable & Sendable>(_ arguments: [String], as type: Report.Type) async throws -> Report {
        let output = try await output(arguments)
        do {
            return try JSONDecoder().decode(Report.self, from: output)
        } catch {
            throw Failed(description: "curlew-soak said: \(String(decoding: output, as: UTF8.self))")
        }
    }

    private static func output(_ arguments: [String]) async throws -> Data {
        let process = Process()
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = URL(fileURLWithPath: own).deletingLastPathComponent()
        process.executableURL = folder.appendingPathComponent("curlew-soak")
        process.arguments = arguments
        let output = Pipe()
        process.standardOutput = output
        // Found before libcurl looks elsewhere: no proxy, no roots but those given.
        let environment = ProcessInfo.processInfo.environment
        process.environment = environment.filter { ["PATH", "LLVM_PROFILE_FILE"].contains($0.key) }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                // A thread of its own: reading to the end blocks, and a task's thread must not.
                Thread.detachNewThread {
                    do {
                        try process.run()
                        let data = output.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        let status = process.terminationStatus
                        if status == 0 { return continuation.resume(returning: data) }
                        continuation.resume(throwing: Failed(description: "curlew-soak ended with \(status)"))
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

/// How many digits the length of a file has.
func lengthOfLength(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return "\(attributes[.size] as? Int ?? -1)".count
}
