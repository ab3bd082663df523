// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Pillow, a library for images in Python.
enum Pillow {
    /// The folder in which Scripts/setup-peers installs the library.
    private static let library = "/usr/local/lib/curlew-pillow"

    static var isInstalled: Bool { FileManager.default.fileExists(atPath: library + "/PIL") }

    /// Runs a script in a process of its own and returns its output.
    ///
    /// - Parameters:
    ///   - script: A script whose first argument is the folder of the library, and whose second one is a folder for
    ///     files.
    ///   - folder: The folder for files.
    static func output(of script: String, _ folder: URL) async throws -> Data {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", script, library, folder.path()]
        let pipe = Pipe()
        process.standardOutput = pipe
        return try await withCheckedThrowingContinuation { continuation in
            // Use a separate thread, because reading to the end blocks.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try process.run()
                        let data = pipe.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        return data
                    })
            }
        }
    }
}
