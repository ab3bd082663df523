// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A network namespace with the program Watch and a shell inside, which end together.
enum NetworkNamespace {
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

    /// The steps run in the shell, because each wait of a task takes seconds while many tests run.
    private static let script = """
        PATH=$PATH:/usr/sbin:/sbin
        coproc WATCH { exec "$0" "$@" 2>&1; }
        exec 3>&"${WATCH[1]}" 4<&"${WATCH[0]}"
        while IFS= read -r line; do
            case $line in
                "> "*) echo "${line#> }" >&3 ;;
                "< "*)
                    while true; do
                        IFS= read -r -t 120 seen <&4 || { echo "failed: $line"; exit 1; }
                        echo "$seen"
                        if [[ $seen == "${line#< }"* ]]; then break; fi
                    done ;;
                *) eval "$line" 2>&1 || { echo "failed: $line"; exit 1; } ;;
            esac
        done
        """

    /// Starts Watch without an interface that is up, and runs steps.
    ///
    /// - Parameters:
    ///   - hosts: The hosts whose paths Watch prints.
    ///   - steps: Lines for the input of Watch after "> ", starts of lines to wait for in its output after "< ", and
    ///     commands of the shell.
    /// - Returns: The lines of Watch.
    /// - Throws: An error with all lines when a step has failed.
    static func run(watching hosts: [String], _ steps: [String]) async throws -> [String] {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let watch = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("Watch").path
        let (process, input, output) = (Process(), Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        process.arguments =
            ["--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", script, watch]
            + hosts
        process.environment = ChildProgram.environment()
        process.standardInput = input
        process.standardOutput = output
        let data = try await withCheckedThrowingContinuation { continuation in
            // A separate thread, because reading to the end blocks and a task must not block its thread.
            Thread.detachNewThread {
                do {
                    try process.run()
                    let text = steps.map { $0 + "\n" }.joined()
                    try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
                    try input.fileHandleForWriting.close()
                    let data = output.fileHandleForReading.readDataToEndOfFile()
                    process.waitUntilExit()
                    continuation.resume(returning: data)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        if process.terminationStatus != 0 || lines.contains(where: { $0.hasPrefix("failed: ") }) {
            throw ChildProgram.Failed(description: lines.joined(separator: "\n"))
        }
        return lines
    }
}
