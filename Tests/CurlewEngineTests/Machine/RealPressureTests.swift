// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Foundation
import Glibc
import Testing

@testable import CurlewEngine

/// Memory pressure that a process causes in a control group of its own.
///
/// The stalls are also those of the machine, so that other programs release memory. The test therefore runs only on
/// request.
@Suite(.timeLimit(.minutes(5)))
struct RealPressureTests {
    /// The groups that limit memory (cgroup v1), and those that count stalls (cgroup v2).
    private static let limits = "/sys/fs/cgroup/memory"
    private static let stalls = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].first { path in
        access("\(path)/cgroup.procs", W_OK) == 0 && access("\(path)/memory.pressure", R_OK) == 0
    }

    /// The reason why the test cannot run; nil if it can.
    static let refusal: String? = {
        if getenv("CURLEW_TEST_PRESSURE") == nil { return "CURLEW_TEST_PRESSURE is unset" }
        if stalls == nil { return "no writable control groups of version 2 with memory.pressure" }
        return access("\(limits)/cgroup.procs", W_OK) == 0 ? nil : "no writable control groups that limit memory"
    }()

    @Test(.enabled(if: refusal == nil, "\(refusal ?? "")"))
    func stallsOfAControlGroupReachObservers() async throws {
        let name = "curlew-pressure-\(getpid())"
        let (limit, stall) = ("\(Self.limits)/\(name)", "\(try #require(Self.stalls))/\(name)")
        let file = "/var/tmp/\(name)"
        for group in [limit, stall] {
            try FileManager.default.createDirectory(atPath: group, withIntermediateDirectories: false)
        }
        defer {
            rmdir(limit)
            rmdir(stall)
            unlink(file)
        }
        let scene = try MemoryScene(hasPressure: false)
        try scene.write("\(16 << 20)", to: "\(limit)/memory.limit_in_bytes")
        try scene.write("0::/\(name)\n", to: "\(scene.proc)/self/cgroup")
        try scene.write(
            String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8), to: "\(scene.proc)/self/mountinfo")

        let monitor = MemoryMonitor(scene.places)
        let (states, continuation) = AsyncStream<MemoryState>.makeStream()
        let number = monitor.observe { continuation.yield($0) }
        var changes = states.makeAsyncIterator()
        let first = await changes.next()
        #expect(first?.level == .normal)
        #expect(first?.support.watched.map(\.path) == ["\(stall)/memory.pressure"])

        // Pages belong to the group that reads or writes them first; the file has thrice the memory of the group.
        let child = Process()
        child.executableURL = URL(filePath: "/bin/sh")
        child.arguments = [
            "-c",
            """
            echo $$ > \(limit)/cgroup.procs && echo $$ > \(stall)/cgroup.procs || exit
            head -c 48M /dev/zero > \(file)
            while cat \(file) > /dev/null; do :; done
            """,
        ]
        try child.run()
        let change = await changes.next()
        #expect(change.map { $0.level > .normal } == true)
        monitor.end(number)
        try scene.write("1", to: "\(stall)/cgroup.kill")
        child.waitUntilExit()
    }
}
