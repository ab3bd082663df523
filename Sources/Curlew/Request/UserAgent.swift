// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// What a program calls itself unless it is told otherwise (RFC 9110 §10.1.5).
///
/// It tells nothing of the machine: neither kernel, nor distribution, nor the version of libcurl, which say to every
/// server what can be attacked.
enum UserAgent {
    /// For this process: program Curlew/version.
    static let standard = text(
        program: program(link: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")),
        version: nil, library: libraryVersion)

    /// The field of its parts; those that are nil, or have nothing that may stand in the field, are left out.
    ///
    /// Products are tokens (RFC 9110 §5.6.2): everything else is dropped.
    static func text(program: String?, version: String?, library: String) -> String {
        [product(program, version), product("Curlew", library)].compactMap(\.self).joined(separator: " ")
    }

    private static func product(_ name: String?, _ version: String?) -> String? {
        guard let name = kept(name, .token) else { return nil }
        return [name, kept(version, .token)].compactMap(\.self).joined(separator: "/")
    }

    /// The allowed bytes of a part, at most 64; nil when none is left.
    private static func kept(_ text: String?, _ allowed: ByteSet) -> String? {
        guard let text else { return nil }
        let kept = String(decoding: text.utf8.filter(allowed.contains).prefix(64), as: UTF8.self)
        return kept.isEmpty ? nil : kept
    }

    /// The last component of a program's path; the kernel marks one whose file was replaced.
    static func program(link: String?) -> String? {
        guard var name = link?.split(separator: "/").last else { return nil }
        let mark = " (deleted)"
        if name.hasSuffix(mark) { name = name.dropLast(mark.count) }
        return String(name)
    }
}
