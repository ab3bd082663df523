// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Quotes bytes as one word of a shell's command line, or as a format of its `printf`.
///
/// Words are bare where that is safe, otherwise in single quotes, inside which only the quote itself is special.
/// Control characters and bidirectional controls need `$'…'`, which POSIX has since 2024, and bash, ksh, zsh and
/// busybox have had for long; dash does not support it.
enum ShellWord {
    /// - Parameter keepsLines: Whether line feeds stay unchanged, in single quotes, or become escapes.
    static func quoted(_ text: String, keepsLines: Bool = false) -> String {
        if !text.isEmpty, bare.containsAll(of: text), !text.hasPrefix("=") { return text }
        let scalars = text.unicodeScalars
        let isPlain = scalars.allSatisfy { !String.needsEscape($0) || (keepsLines && $0 == "\n") }
        // A quote becomes `'\''`: the end of the quoted part, an escaped quote, and the start of the next part.
        if isPlain { return "'" + scalars.map { $0 == "'" ? #"'\''"# : String($0) }.joined() + "'" }
        return "$'" + scalars.map(escaped).joined() + "'"
    }

    private static func escaped(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": #"\n"#
        case "'": #"\'"#
        case "\\": #"\\"#
        case _ where String.needsEscape(scalar): String(scalar).utf8.map(octal).joined()
        default: String(scalar)
        }
    }

    /// Returns a single-quoted format with which `printf` of any POSIX shell writes exactly these bytes, including NUL.
    static func printfFormat(_ bytes: [UInt8]) -> String {
        var format = "'"
        for (index, byte) in bytes.enumerated() {
            switch byte {
            // `printf` takes a format that begins with a hyphen for an option.
            case UInt8(ascii: "-") where index == 0: format += octal(byte)
            case UInt8(ascii: "%"): format += "%%"
            case UInt8(ascii: "\n"): format += #"\n"#
            case UInt8(ascii: "'"), UInt8(ascii: "\\"), 0..<0x20, 0x7F...: format += octal(byte)
            default: format.unicodeScalars.append(Unicode.Scalar(byte))
            }
        }
        return format + "'"
    }

    private static func octal(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 8)
        return #"\"# + String(repeating: "0", count: 3 - digits.count) + digits
    }

    private static let bare = ByteSet.letters.union(.digits).union(ByteSet("_./:=@%+,-"))
}
