// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Names of files that strangers suggest.
enum FileName {
    /// The most bytes of a name: what is added to it while the file is incomplete has to fit, too.
    static let most = 200
    /// The most bytes of a name that somebody chooses: so many leave room for ".part.json.new" in the 255 of file systems.
    static let longest = 241
    private static let longestExtension = 20

    /// A name made safe to be that of a new file in a directory of one's own choice; nil when nothing is left of it.
    ///
    /// Scalars are looked at, not characters: a slash with a joiner behind it is a slash to the file system.
    static func safe(_ name: String) -> String? {
        let scalars = name.unicodeScalars
        let slash = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let last = scalars[(slash.map { scalars.index(after: $0) } ?? scalars.startIndex)...]
        let safe = trimmed(shortened(trimmed(String(String.UnicodeScalarView(last.filter { !isDangerous($0) })))))
        return safe.isEmpty ? nil : unlikeParts(safe)
    }

    /// Without dots and blanks at its start and its end.
    private static func trimmed(_ name: String) -> String {
        func isEdge(_ scalar: Unicode.Scalar) -> Bool { scalar == "." || scalar.properties.isWhitespace }
        var scalars = name.unicodeScalars.drop(while: isEdge)
        while let end = scalars.last, isEdge(end) { scalars.removeLast() }
        return String(scalars)
    }

    /// With another ending, if it has that of a part or its note: a server must not plant what a later download goes on with.
    private static func unlikeParts(_ name: String) -> String {
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

    /// The safe name of the last component of a URL's path, decoded; nil when there is none.
    static func ofPath(of url: String) -> String? {
        guard let last = URLReference(url).path.split(separator: UInt8(ascii: "/")).last else { return nil }
        let name = String(decoding: last, as: UTF8.self)
        return safe("UTF-8''\(name)".extendedValue ?? name)
    }

    /// What says nothing to a reader, or lets a name look like another: controls, line ends, marks of direction.
    private static func isDangerous(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0, 0x061C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB:
            true
        default: false
        }
    }

    /// Cut between characters where there are several, in front of an extension of a usual length.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > most else { return name }
        let dot = name.unicodeScalars.lastIndex(of: ".") ?? name.endIndex
        let isUsual = name[dot...].utf8.count <= longestExtension
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

    /// The name with a number before its extension: "a.tar.gz" becomes "a (2).tar.gz".
    static func numbered(_ name: String, _ number: Int) -> String {
        var dot = name.lastIndex(of: ".") ?? name.endIndex
        if name[..<dot].hasSuffix(".tar") { dot = name.index(dot, offsetBy: -4) }
        // A name that begins with its only dot has no extension.
        if dot == name.startIndex { dot = name.endIndex }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }

    /// A path with a number before its last component's extension.
    static func numbered(path: String, _ number: Int) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return numbered(path, number) }
        let start = path.utf8.index(after: slash)
        return path[..<start] + numbered(String(path[start...]), number)
    }
}
