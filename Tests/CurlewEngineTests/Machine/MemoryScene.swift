// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Glibc

@testable import CurlewEngine

/// A directory with the files by which the kernel reports memory pressure, as regular files.
final class MemoryScene: Sendable {
    let root = FileManager.default.temporaryDirectory.appendingPathComponent("curlew-memory-\(UUID())").path
    var proc: String { "\(root)/proc" }
    var pressure: String { "\(proc)/pressure/memory" }
    /// The directory of the process's control group, with a blank in its name.
    var group: String { "\(root)/groups/my app" }

    private let variables: Lock<[String: String]>

    /// - Parameters:
    ///   - group: The files of the control group with their texts.
    ///   - hasPressure: Whether the kernel has pressure stall information.
    ///   - variables: The environment variables.
    init(
        group files: [String: String] = ["cgroup.type": "", "memory.pressure": "", "memory.events": "high 10\n"],
        hasPressure: Bool = true, variables: [String: String] = [:]
    ) throws {
        self.variables = Lock(variables)
        for folder in ["\(root)/proc/self", "\(root)/proc/pressure", "\(root)/groups/my app"] {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        }
        try write("0::/my app\n", to: "\(proc)/self/cgroup")
        try write("1 2 0:3 / \(root)/groups rw - cgroup2 none rw\n", to: "\(proc)/self/mountinfo")
        if hasPressure { try write("", to: pressure) }
        for (name, text) in files { try write(text, to: "\(group)/\(name)") }
    }

    deinit { try? FileManager.default.removeItem(atPath: root) }

    var places: MemoryPlaces {
        var places = MemoryPlaces()
        places.proc = proc
        places.variable = { [variables] name in variables.withLock { $0[name] } }
        return places
    }

    func set(_ name: String, _ value: String?) { variables.withLock { $0[name] = value } }

    /// Overwrites a file in one step; the new text must not be shorter.
    func write(_ text: String, to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0, pwrite(file, text, text.utf8.count, 0) == text.utf8.count else {
            throw DiskFailure("cannot write", path, errno)
        }
        close(file)
    }

    func text(_ path: String) throws -> String { try String(contentsOf: URL(filePath: path), encoding: .utf8) }
}

extension MemorySource {
    /// Returns the descriptors that are ready within a minute, and an empty array if no descriptor becomes ready.
    func ready() -> [KernelWait] {
        var entries = waits.map { pollfd(fd: $0.descriptor, events: $0.events, revents: 0) }
        poll(&entries, nfds_t(entries.count), 60_000)
        return entries.filter { $0.revents != 0 }.map { KernelWait($0.fd, CInt($0.revents)) }
    }

    /// The descriptors of the triggers.
    var triggers: [CInt] { waits.filter { CInt($0.events) == POLLPRI }.map(\.descriptor) }

    /// The paths of the watched interfaces.
    var paths: [String] { support.watched.map(\.path) }
}
