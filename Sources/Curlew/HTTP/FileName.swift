// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The rules for untrusted file names.
package enum FileName {
    /// The maximum length in bytes of a name that a server suggests, so that the suffixes of incomplete files fit, too.
    package static let most = 200
    /// The maximum length in bytes of a name that the caller chooses: 255, the limit of file systems, without
    /// ".part.json.new".
    package static let longest = 241
    private static let maximumExtensionLength = 20

    /// Returns a name that is safe for a new file in a directory that the caller chooses; nil when no character is
    /// left.
    ///
    /// The method inspects scalars, not characters: for the file system, a slash before a joiner is a slash.
    package static func safe(_ name: String) -> String? {
        let scalars = name.unicodeScalars
        let slash = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let last = scalars[(slash.map { scalars.index(after: $0) } ?? scalars.startIndex)...]
        let safe = trimmed(shortened(trimmed(String(String.UnicodeScalarView(last.filter { !isUnsafe($0) })))))
        return safe.isEmpty ? nil : withoutPartialSuffix(safe)
    }

    /// Returns the name without dots and white space at its start and end.
    private static func trimmed(_ name: String) -> String {
        func isEdge(_ scalar: Unicode.Scalar) -> Bool { scalar == "." || scalar.properties.isWhitespace }
        var scalars = name.unicodeScalars.drop(while: isEdge)
        while let end = scalars.last, isEdge(end) { scalars.removeLast() }
        return String(scalars)
    }

    /// Changes the ending of a partial file or its note, so that a server cannot plant a file that a later download
    /// resumes.
    private static func withoutPartialSuffix(_ name: String) -> String {
        let bytes = Array(name.utf8)
        for ending in [".part", ".part.json", ".part.json.new"] where bytes.count >= ending.utf8.count {
            let dot = bytes.count - ending.utf8.count
            guard zip(bytes[dot...], ending.utf8).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 && $1 >= 0x61 }) else {
                continue
            }
            return String(decoding: bytes[..<dot] + [UInt8(ascii: "_")] + bytes[(dot + 1)...], as: UTF8.self)
        }
        return name
    }

    /// Returns the safe name of the last component of a URL's path, decoded; nil when no name is left.
    package static func ofPath(of url: String) -> String? {
        guard let last = URLReference(url).path.split(separator: UInt8(ascii: "/")).last else { return nil }
        let name = String(decoding: last, as: UTF8.self)
        return safe("UTF-8''\(name)".extendedValue ?? name)
    }

    /// Whether a scalar is invisible or makes a name look like another one: controls, line ends, direction marks.
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB:
            true
        default: false
        }
    }

    /// Returns the name cut to ``most`` bytes: in front of an extension of at most 20 bytes, and between characters
    /// unless only one is left.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > most else { return name }
        let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
        let isUsual = name[dot...].utf8.count <= maximumExtensionLength
        let tail = isUsual ? name[dot...] : ""
        let stem = isUsual ? name[..<dot] : name[...]
        let room = most - tail.utf8.count
        guard stem.utf8.count > room else { return String(stem + tail) }
        var end = name.utf8.index(name.startIndex, offsetBy: room)
        while end.samePosition(in: name.unicodeScalars) == nil { end = name.utf8.index(before: end) }
        var cut = stem[..<end]
        if String.Index(end, within: name) == nil, cut.count > 1 { cut.removeLast() }
        return String(cut + tail)
    }

    /// Returns the name with a number before its extension: "a.tar.gz" becomes "a (2).tar.gz".
    package static func numbered(_ name: String, _ number: Int) -> String {
        var dot = name.lastIndex(of: ".") ?? name.endIndex
        if name[..<dot].hasSuffix(".tar") { dot = name.index(dot, offsetBy: -4) }
        // A name that begins with its only dot has no extension.
        if dot == name.startIndex { dot = name.endIndex }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }

    /// Returns the path with a number before the extension of its last component.
    package static func numbered(path: String, _ number: Int) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return numbered(path, number) }
        let start = path.utf8.index(after: slash)
        return path[..<start] + numbered(String(path[start...]), number)
    }
}
