// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Names of files that strangers suggest.
enum FileName {
    /// The most bytes of a name: what is added to it while the file is incomplete has to fit, too.
    static let most = 200
    private static let longestExtension = 20

    /// A name made safe to be that of a new file in a directory of one's own choice; nil when nothing is left of it.
    static func safe(_ name: String) -> String? {
        let last = name.split(omittingEmptySubsequences: false) { $0 == "/" || $0 == "\\" }.last ?? ""
        var scalars = last.unicodeScalars.filter { !isDangerous($0) }[...]
        scalars = scalars.drop { $0 == "." || $0.properties.isWhitespace }
        while let end = scalars.last, end == "." || end.properties.isWhitespace { scalars.removeLast() }
        let safe = String(String.UnicodeScalarView(scalars))
        return safe.isEmpty ? nil : shortened(unlikeParts(safe))
    }

    /// With another ending, if it has that of a part or its note: a server must not plant what a later download goes on with.
    private static func unlikeParts(_ name: String) -> String {
        for ending in [".part", ".part.json", ".part.json.new"] where name.lowercased().hasSuffix(ending) {
            let stem = name.dropLast(ending.count)
            return stem + "_" + name.suffix(ending.count - 1)
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
        case 0..<0x20, 0x7F..<0xA0, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
        default: false
        }
    }

    /// Cut between characters, in front of an extension of a usual length.
    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > most else { return name }
        let dot = name.lastIndex(of: ".") ?? name.endIndex
        let isUsual = name[dot...].utf8.count <= longestExtension
        let tail = isUsual ? name[dot...] : ""
        var stem = isUsual ? name[..<dot] : name[...]
        while stem.utf8.count + tail.utf8.count > most { stem.removeLast() }
        return String(stem + tail)
    }

    /// The name with a number before its extension: "a.tar.gz" becomes "a (2).tar.gz".
    static func numbered(_ name: String, _ number: Int) -> String {
        var dot = name.lastIndex(of: ".") ?? name.endIndex
        if name[..<dot].hasSuffix(".tar") { dot = name.index(dot, offsetBy: -4) }
        // A name that begins with its only dot has no extension.
        if dot == name.startIndex { dot = name.endIndex }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }
}
