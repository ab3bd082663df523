// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A network namespace with a shell and the program Watch, which both end with this object.
final class NetworkNamespace {
    /// Whether the kernel permits this user to create a network namespace.
    static let isPermitted: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        process.arguments = ["--user", "--map-root-user", "--net", "--pid", "--fork", "true"]
        process.standardError = nil
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    private let process = Process()
    private let input = Pipe()
    private var lines: AsyncStream<String>.Iterator

    /// Starts Watch for some hosts, without an interface that is up.
    init(watching hosts: [String]) throws {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let watch = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("Watch").path
        // Each line of the input is a command of the shell; "> TEXT" is a line for Watch.
        let script = """
            PATH=$PATH:/usr/sbin:/sbin
            coproc WATCH { exec "$0" "$@" 2>&1; }
            exec 3>&"${WATCH[1]}" 4<&"${WATCH[0]}"
            cat <&4 &
            while IFS= read -r line; do
                case $line in
                    "> "*) echo "${line#> }" >&3 ;;
                    *) eval "$line" || echo "failed: $line" ;;
                esac
            done
            """
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        process.arguments =
            ["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", script, watch]
            + hosts
        process.environment = ChildProgram.environment()
        process.standardInput = input
        let output = Pipe()
        process.standardOutput = output
        let (lines, continuation) = AsyncStream<String>.makeStream()
        self.lines = lines.makeAsyncIterator()
        try process.run()
        let handle = output.fileHandleForReading
        // A separate thread reads, because a read blocks and a task must not block its thread.
        Thread.detachNewThread {
            var text = Data()
            while true {
                let more = handle.availableData
                if more.isEmpty { break }
                text += more
                while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
                    continuation.yield(String(decoding: text[text.startIndex..<end], as: UTF8.self))
                    text = Data(text[(end + 1)...])
                }
            }
            continuation.finish()
        }
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// Sends commands to the shell, or lines after "> " to Watch.
    func run(_ commands: String...) throws {
        try input.fileHandleForWriting.write(contentsOf: Data(commands.map { $0 + "\n" }.joined().utf8))
    }

    /// Waits for a line that begins with a text, and returns the lines up to it.
    ///
    /// - Throws: An error with all lines when the output ends first, or when a command has failed.
    func wait(for start: String) async throws -> [String] {
        var seen: [String] = []
        while let next = await lines.next() {
            seen.append(next)
            if next.hasPrefix(start) { return seen }
            if next.hasPrefix("failed: ") { break }
        }
        throw ChildProgram.Failed(description: "“\(start)” is missing in:\n" + seen.joined(separator: "\n"))
    }
}
