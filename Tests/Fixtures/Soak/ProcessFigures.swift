// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// What the kernel counts for this process at one moment.
struct ProcessFigures: Codable, Equatable {
    /// What open descriptors lead to, without the folder that lists them and without numbers that are chance.
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

    /// Open descriptors and what they lead to.
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

    /// Kibibytes by a name of /proc/self/status, such as VmHWM.
    static func memory(_ name: String) -> Int {
        for line in text("/proc/self/status").split(separator: "\n") where line.hasPrefix(name + ":") {
            return line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) } ?? 0
        }
        return 0
    }

    /// Kibibytes that are resident without what the allocator keeps for later.
    static func trimmed() -> Int {
        trimHeap()
        return memory("VmRSS")
    }

    /// What the kernel says about each open socket: addresses and states, as in /proc/net.
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

    /// What the parent left open is not passed on, so that only our own descriptors are judged.
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

    /// The figures once sessions that were let go are gone: their threads, then what the last task of theirs held.
    static func atRest(within limit: Duration = .seconds(15)) async -> ProcessFigures {
        let end = ContinuousClock.now + limit
        var figures = now()
        while !figures.isAtRest && ContinuousClock.now < end {
            await Task.yield()
            figures = now()
        }
        return figures
    }

    /// No loop is left; the one epoll that may be there is that of the library behind Swift's tasks.
    private var isAtRest: Bool {
        loopThreads + sourceThreads == 0 && descriptors.count { $0 == "anon_inode:[eventpoll]" } <= 1
    }
}
