// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A `.netrc` file: names and passwords by host, in the format of ftp, curl and other programs.
///
/// White space separates words, on one line or several. A word that begins with a quotation mark ends at the next one,
/// may contain `\"`, `\\`, `\n`, `\r` and `\t`, and cannot contain a line end. In the position of a keyword, "#" begins
/// a comment that ends with the line. `macdef` and all lines up to an empty line are skipped.
struct NetrcFile: Equatable {
    /// The entry for one machine.
    struct Entry: Equatable {
        /// The name of the machine; nil for the `default` entry.
        var machine: String?
        var login: String?
        var password: String?
        var account: String?
    }

    /// The entries in the order of the file; the `default` entry, which has no machine, is the last.
    let entries: [Entry]

    /// Parses the bytes of a file.
    ///
    /// Complexity: O(*n*).
    init(_ bytes: some Sequence<UInt8>) throws(InvalidNetrc) {
        var scanner = NetrcScanner(bytes)
        var entries: [Entry] = []
        while let (word, line) = try scanner.keyword() {
            switch word {
            case "machine":
                if entries.last?.isDefault == true { throw InvalidNetrc(line, .entryAfterDefault) }
                entries.append(Entry(machine: try scanner.value(line)))
            case "default":
                if entries.last?.isDefault == true { throw InvalidNetrc(line, .entryAfterDefault) }
                entries.append(Entry())
            case "macdef":
                _ = try scanner.value(line)
                scanner.skipMacro()
            default:
                guard let path = Self.members[word] else { throw InvalidNetrc(line, .unknownKeyword) }
                let value = try scanner.value(line)
                guard !entries.isEmpty else { throw InvalidNetrc(line, .noMachine) }
                path(&entries[entries.count - 1], value)
            }
        }
        self.entries = entries
    }

    private static let members: [String: @Sendable (inout Entry, String) -> Void] = [
        "login": { $0.login = $1 }, "user": { $0.login = $1 }, "password": { $0.password = $1 },
        "account": { $0.account = $1 },
        // Other programs write these keywords; they do not restrict an entry, which is chosen by its host alone.
        "port": { _, _ in }, "protocol": { _, _ in },
    ]

    /// Returns the first entry for a host, else the `default` entry.
    ///
    /// - Parameter isSame: Returns whether the name of a machine is the host's name.
    func entry(where isSame: (String) -> Bool) -> Entry? {
        entries.first { $0.machine.map(isSame) ?? true }
    }
}

extension NetrcFile.Entry {
    var isDefault: Bool { machine == nil }
}

/// Splits a file into words.
private struct NetrcScanner {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
        // Some editors write a UTF-8 byte order mark.
        if self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// Returns the next keyword and its line; nil at the end.
    mutating func keyword() throws(InvalidNetrc) -> (String, line: Int)? {
        skipSpace()
        while current == UInt8(ascii: "#") {
            skipLine()
            skipSpace()
        }
        guard current != nil else { return nil }
        let line = line
        return (try word(), line)
    }

    /// Returns the value of a keyword.
    ///
    /// - Parameter keyword: The line of the keyword.
    mutating func value(_ keyword: Int) throws(InvalidNetrc) -> String {
        skipSpace()
        guard current != nil else { throw InvalidNetrc(keyword, .noValue) }
        return try word()
    }

    /// Skips the rest of the line, and all lines up to an empty one.
    mutating func skipMacro() {
        skipLine()
        while current != nil {
            let start = position
            skipLine()
            if bytes[start..<position].allSatisfy({ $0 == 0x0A || $0 == 0x0D }) { return }
        }
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x0A || byte == 0x0D || byte.isLinearSpace }

    private mutating func skipSpace() {
        while let byte = current, Self.isSpace(byte) {
            if byte == 0x0A { line += 1 }
            position += 1
        }
    }

    private mutating func skipLine() {
        while let byte = current {
            position += 1
            if byte == 0x0A {
                line += 1
                return
            }
        }
    }

    private mutating func word() throws(InvalidNetrc) -> String {
        var word: [UInt8] = []
        if current == UInt8(ascii: "\"") {
            try quoted(into: &word)
        } else {
            while let byte = current, !Self.isSpace(byte) {
                word.append(byte)
                position += 1
            }
        }
        guard let text = String(validating: word, as: UTF8.self) else { throw InvalidNetrc(line, .notUTF8) }
        return text
    }

    private mutating func quoted(into word: inout [UInt8]) throws(InvalidNetrc) {
        position += 1
        while let byte = current, byte != 0x0A {
            position += 1
            switch byte {
            case UInt8(ascii: "\""): return
            case UInt8(ascii: "\\"):
                guard let escaped = current, escaped != 0x0A else { throw InvalidNetrc(line, .unterminatedQuote) }
                position += 1
                word.append(Self.unescaped[escaped] ?? escaped)
            default: word.append(byte)
            }
        }
        throw InvalidNetrc(line, .unterminatedQuote)
    }

    private static let unescaped: [UInt8: UInt8] = [
        UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09,
    ]
}
