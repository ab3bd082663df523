// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Runs scripts in a real shell, to test the quoting.
enum ShellCommand {
    /// Returns the output of a script.
    ///
    /// - Parameter shell: The path of the shell, or its name in the standard folders.
    static func output(_ script: String, shell: String = "sh") async throws -> Data {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: try path(of: shell))
        // A file, since the length of an argument is limited.
        let file = try ScratchFile(script.utf8)
        defer { withExtendedLifetime(file) {} }
        process.arguments = [file.path]
        let output = Pipe()
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        // Without a home directory curl reads no .curlrc; without other variables it uses no proxy.
        process.environment = ["PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": "/nonexistent", "LC_ALL": "C"]
        return try await withCheckedThrowingContinuation { continuation in
            // A separate thread, since reading to the end blocks, which a task's thread must not.
            Thread.detachNewThread {
                do {
                    try process.run()
                    let data = output.fileHandleForReading.readDataToEndOfFile()
                    process.waitUntilExit()
                    continuation.resume(returning: data)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    /// Whether a program is in one of the standard folders.
    static func isInstalled(_ program: String) -> Bool { (try? path(of: program)) != nil }

    private static func path(of program: String) throws -> String {
        let folders = ["/bin/", "/usr/bin/", "/usr/local/bin/"]
        guard let path = folders.map({ $0 + program }).first(where: FileManager.default.isExecutableFile) else {
            throw CocoaError(.fileNoSuchFile)
        }
        return path
    }
}
