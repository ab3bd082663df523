// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import FoundationEssentials
import Glibc
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PeerProcessTests {
    private func makeFolder() throws -> String {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-process-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        return folder
    }

    /// A reader of this process's output must not have to wait for the end of a peer.
    @Test func peerDoesNotInheritStandardOutput() throws {
        let script = "readlink /proc/self/fd/1 /proc/self/fd/2; echo $PPID"
        let process = try PeerProcess(["/bin/sh", "-c", script], folder: makeFolder())
        let printed = process.failure(before: "\u{0}") ?? ""
        let lines = printed.split(separator: "\n").map(String.init)
        try #require(lines.count == 3, "\(printed)")
        #expect(lines[0] == lines[1])
        #expect(lines[0].hasPrefix("socket:"))
        for descriptor in [1, 2] {
            let link = "/proc/\(lines[2])/fd/\(descriptor)"
            #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "/dev/null")
        }
    }

    /// A program that ignores the order to end is killed with its child processes, and its folder is removed.
    @Test func stubbornProcessTreeIsKilled() async throws {
        let folder = try makeFolder()
        // Run on another thread, because the program is killed only after five seconds.
        let printed = try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try runStubborn(folder) }) }
        }
        let processes = printed.split(separator: " ").compactMap { pid_t($0) }
        #expect(processes.count == 2, "\(printed)")
        for process in processes {
            while isRunning(process), !Task.isCancelled { await Task.yield() }
        }
        #expect(!FileManager.default.fileExists(atPath: folder))
    }

    /// Starts and ends a program that ignores SIGTERM; returns the numbers of its process and of its child.
    private func runStubborn(_ folder: String) throws -> String {
        let script = """
            trap "" TERM
            sleep 1000 &
            printf "%s %s " $$ $! > "$0/numbers"
            echo ready
            wait
            """
        let process = try PeerProcess(["/bin/sh", "-c", script, folder], folder: folder)
        if let failure = process.failure(before: "ready") { throw PeerFailure(failure) }
        return try String(contentsOf: URL(filePath: "\(folder)/numbers"), encoding: .utf8)
    }

    private func isRunning(_ process: pid_t) -> Bool {
        let status = try? String(contentsOf: URL(filePath: "/proc/\(process)/stat"), encoding: .utf8)
        return status.map { !$0.contains(") Z ") } ?? false
    }
}
