// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// The kernel's counts for this process at one moment.
struct ProcessFigures: Codable, Equatable {
    /// The targets of open descriptors, without the folder that lists them and without random numbers.
    var descriptors: [String] = []
    var loopThreads = 0
    var sourceThreads = 0

    static func now() -> ProcessFigures {
        var figures = ProcessFigures()
        let kinds = targets().values.map { target in String(target.prefix { $0 != "[" || target.first == "a" }) }
        figures.descriptors = kinds.filter { !$0.hasSuffix("/fd") }.sorted()
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        for task in tasks {
            switch text("/proc/self/task/\(task)/comm") {
            case "curlew-loop\n": figures.loopThreads += 1
            case "curlew-source\n": figures.sourceThreads += 1
            default: break
            }
        }
        return figures
    }

    /// Returns the open descriptors and their targets.
    static func targets() -> [Int32: String] {
        var targets: [Int32: String] = [:]
        for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
            guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"),
                let number = Int32(name)
            else { continue }
            targets[number] = target
        }
        return targets
    }

    /// Returns a value of /proc/self/status in KiB by its name, such as VmHWM.
    static func memory(_ name: String) -> Int {
        for line in text("/proc/self/status").split(separator: "\n") where line.hasPrefix(name + ":") {
            return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) } ?? 0
        }
        return 0
    }

    /// Returns the resident memory in KiB, after the allocator has returned its free memory.
    static func trimmed() -> Int {
        trimHeap()
        return memory("VmRSS")
    }

    /// Returns the kernel's data about each open socket: addresses and states, as in /proc/net.
    static func sockets() -> [String] {
        let tables = ["tcp", "tcp6", "udp", "unix", "netlink"].map {
            ($0, text("/proc/net/\($0)").split(separator: "\n"))
        }
        return targets().values.filter { $0.hasPrefix("socket:[") }.map { target in
            let inode = target.dropFirst("socket:[".count).dropLast()
            for (name, lines) in tables {
                for line in lines where line.split(separator: " ").contains(inode) { return "\(name): \(line)" }
            }
            return "\(target), in no table"
        }
    }

    /// Marks inherited descriptors close-on-exec, so that the listing shows only our own descriptors.
    static func closeInheritedOnExec() {
        for number in targets().keys where number > 2 { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    }

    static func text(_ path: String) -> String {
        guard let file = fopen(path, "re") else { return "" }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        while case let byte = getc(file), byte != EOF { bytes.append(UInt8(byte)) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the figures after released sessions have ended: their threads, then the objects of their last task.
    static func atRest(within limit: Duration = .seconds(15)) async -> ProcessFigures {
        let end = ContinuousClock.now + limit
        var figures = now()
        while !figures.isAtRest && ContinuousClock.now < end {
            await Task.yield()
            figures = now()
        }
        return figures
    }

    /// Whether no loop is left; one epoll descriptor may remain, which belongs to the library behind Swift's tasks.
    private var isAtRest: Bool {
        loopThreads + sourceThreads == 0 && descriptors.count { $0 == "anon_inode:[eventpoll]" } <= 1
    }
}
