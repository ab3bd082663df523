// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The default `User-Agent` of a program (RFC 9110 §10.1.5).
///
/// The value names no kernel, no distribution and no version of libcurl, because a server could use them to attack the
/// machine.
enum UserAgent {
    /// The value for this process: program Curlew/version.
    static let standard = text(
        program: program(link: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")),
        version: nil, library: libraryVersion)

    /// Builds the field value from its parts, and leaves out parts that are nil or have no allowed byte.
    ///
    /// Products are tokens (RFC 9110 §5.6.2): all other bytes are dropped.
    static func text(program: String?, version: String?, library: String) -> String {
        [product(program, version), product("Curlew", library)].compactMap(\.self).joined(by: " ")
    }

    private static func product(_ name: String?, _ version: String?) -> String? {
        guard let name = kept(name, .token) else { return nil }
        return [name, kept(version, .token)].compactMap(\.self).joined(by: "/")
    }

    /// Returns the allowed bytes of a part, at most 64; nil when no byte is left.
    private static func kept(_ text: String?, _ allowed: ByteSet) -> String? {
        guard let text else { return nil }
        let kept = String(decoding: text.utf8.filter(allowed.contains).prefix(64), as: UTF8.self)
        return kept.isEmpty ? nil : kept
    }

    /// Returns the last component of a program's path, without the mark that the kernel appends when the file was
    /// replaced.
    static func program(link: String?) -> String? {
        guard var name = link?.split(separator: "/").last else { return nil }
        let mark = " (deleted)"
        if name.hasSuffix(mark) { name = name.dropLast(mark.count) }
        return String(name)
    }
}

extension [String] {
    /// Returns the texts with a separator between them.
    ///
    /// The standard library's `joined(separator:)` looks up types at its first call, which a session need not wait for.
    func joined(by separator: String) -> String {
        var result = ""
        for (index, text) in enumerated() { result += index == 0 ? text : separator + text }
        return result
    }
}
