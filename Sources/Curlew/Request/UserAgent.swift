// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// What a program calls itself when nobody says otherwise (RFC 9110 §10.1.5).
///
/// Of the machine it tells what servers can use, and no more: the kernel without patch level and build, no name.
enum UserAgent {
    /// For this process: program (Linux kernel; architecture; distribution) Curlew/version libcurl/version.
    ///
    /// - Parameter curl: The version of libcurl that is loaded.
    static func standard(curl: String?) -> String {
        text(
            program: machine.program, version: nil, kernel: machine.kernel, architecture: architecture,
            distribution: machine.distribution, library: libraryVersion, curl: curl)
    }

    /// The field of its parts; those that are nil, or have nothing that may stand in the field, are left out.
    ///
    /// Products are tokens (RFC 9110 §5.6.2), and a comment is plain ASCII here: everything else is dropped.
    /// - Parameters:
    ///   - kernel: The release, of which the first two numbers are told.
    ///   - distribution: Its name and version, such as "debian 12".
    static func text(
        program: String?, version: String?, kernel: String?, architecture: String?, distribution: String?,
        library: String, curl: String?
    ) -> String {
        let system = (["Linux"] + [kernel.flatMap(release)].compactMap(\.self)).joined(separator: " ")
        let comment = [system, kept(architecture, comments), kept(distribution, comments)].compactMap(\.self)
        let machine = "(\(comment.joined(separator: "; ")))"
        let own = product("Curlew", library)
        let products = [product(program, version), own, product(curl.map { _ in "libcurl" }, curl)].compactMap(\.self)
        // The field must not begin with a comment, so it follows the first product, whichever that is.
        return ([products[0], machine] + products.dropFirst()).joined(separator: " ")
    }

    /// Name and version of a distribution by its `os-release`; nil when that has no name.
    static func distribution(osRelease: String) -> String? {
        var values: [Substring: String] = [:]
        for line in osRelease.split(separator: "\n") {
            guard let equals = line.firstIndex(of: "=") else { continue }
            values[line[..<equals]] = line[line.index(after: equals)...].filter { $0 != "\"" && $0 != "'" }
        }
        guard let name = values["ID"], !name.isEmpty else { return nil }
        return [name, values["VERSION_ID"]].compactMap(\.self).joined(separator: " ")
    }

    /// "6.1" of "6.1.0-18-amd64"; nil for what does not begin with two numbers.
    private static func release(_ kernel: String) -> String? {
        let numbers = kernel.split(separator: ".", omittingEmptySubsequences: false).prefix(2).map { part in
            part.prefix { $0.isASCII && $0.isNumber }
        }
        return numbers.count == 2 && !numbers.contains("") ? numbers.joined(separator: ".") : nil
    }

    private static func product(_ name: String?, _ version: String?) -> String? {
        guard let name = kept(name, .token) else { return nil }
        return [name, kept(version, .token)].compactMap(\.self).joined(separator: "/")
    }

    /// The allowed bytes of a part, at most as many as anybody needs; nil when none is left.
    private static func kept(_ text: String?, _ allowed: ByteSet) -> String? {
        guard let text else { return nil }
        var kept = String(decoding: text.utf8.filter(allowed.contains).prefix(64), as: UTF8.self)[...]
        while kept.first == " " { kept.removeFirst() }
        while kept.last == " " { kept.removeLast() }
        return kept.isEmpty ? nil : String(kept)
    }

    private static let comments = ByteSet.letters.union(.digits).union(ByteSet(" .-_+~:/"))

    private static let architecture: String? = {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "aarch64"
        #elseif arch(riscv64)
        "riscv64"
        #else
        nil
        #endif
    }()

    private static let machine: (program: String?, kernel: String?, distribution: String?) = (
        program(link: try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")),
        contents("/proc/sys/kernel/osrelease"),
        (contents("/etc/os-release") ?? contents("/usr/lib/os-release")).flatMap(distribution)
    )

    /// The last component of a program's path; the kernel marks one whose file was replaced.
    static func program(link: String?) -> String? {
        guard var name = link?.split(separator: "/").last else { return nil }
        let mark = " (deleted)"
        if name.hasSuffix(mark) { name = name.dropLast(mark.count) }
        return String(name)
    }

    private static func contents(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
