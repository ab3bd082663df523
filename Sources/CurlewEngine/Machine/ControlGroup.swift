// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Finds the control group of this process in the unified hierarchy (cgroup v2) from the files of /proc/self.
///
/// Groups of cgroup v1 are not supported: their notifications need `cgroup.event_control`, and they have no stall
/// times.
enum ControlGroup {
    /// Returns the directory of the group; nil if the process has no group in a mounted unified hierarchy.
    ///
    /// - Parameters:
    ///   - groups: The text of /proc/self/cgroup.
    ///   - mounts: The text of /proc/self/mountinfo.
    static func directory(groups: String, mounts: String) -> String? {
        guard let path = path(in: groups) else { return nil }
        for line in mounts.split(separator: "\n") {
            guard let mount = Mount(line), let rest = relative(path, to: mount.root) else { continue }
            return mount.point == "/" ? "/" + rest : rest.isEmpty ? mount.point : mount.point + "/" + rest
        }
        return nil
    }

    /// Returns the path of the group from the root of the hierarchy; nil for a removed group, and for a group outside
    /// of the process's namespace.
    static func path(in groups: String) -> String? {
        // The unified hierarchy has the number 0 and names no controllers (cgroups(7)).
        guard let line = groups.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else { return nil }
        let path = line.dropFirst(3)
        if path.hasSuffix(" (deleted)") || path.split(separator: "/").contains("..") { return nil }
        return String(path)
    }

    /// Returns the part of a path below a directory, without a slash at its start; nil for a path outside of the
    /// directory.
    private static func relative(_ path: String, to root: String) -> String? {
        if root == "/" { return String(path.dropFirst()) }
        if path == root { return "" }
        return path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : nil
    }

    /// A mount of the unified hierarchy.
    private struct Mount {
        /// The path of the mounted directory from the root of the hierarchy.
        let root: String
        let point: String

        /// Reads a line of mountinfo (proc(5)); nil for mounts of other file systems.
        init?(_ line: Substring) {
            let fields = line.split(separator: " ")
            // Optional fields end with a hyphen, after which the type of the file system follows.
            guard fields.count > 6, let end = fields[6...].firstIndex(of: "-"), fields.indices.contains(end + 1),
                fields[end + 1] == "cgroup2"
            else { return nil }
            (root, point) = (ControlGroup.unescaped(fields[3]), ControlGroup.unescaped(fields[4]))
        }
    }

    /// Replaces escapes such as `\040`, by which mountinfo represents blanks and backslashes.
    static func unescaped(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "\\")) else { return String(text) }
        var (bytes, rest) = ([UInt8](), Array(text.utf8)[...])
        while let first = rest.first {
            let digits = rest.dropFirst().prefix(3)
            if first == UInt8(ascii: "\\"), digits.count == 3,
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
            {
                bytes.append(value)
                rest = rest.dropFirst(4)
            } else {
                bytes.append(first)
                rest = rest.dropFirst()
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
