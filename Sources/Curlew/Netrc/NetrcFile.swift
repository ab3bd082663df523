// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A `.netrc` file: names and passwords by host, as ftp, curl and others read them.
///
/// Words stand apart by white space, on one line or several; one that begins with a quotation mark goes to the next, with
/// `\"`, `\\`, `\n`, `\r` and `\t` inside, and holds no line end. Where a keyword could stand, "#" begins a comment that
/// goes to the end of the line. `macdef` and what follows up to an empty line is skipped.
struct NetrcFile: Equatable {
    /// What is said of one machine.
    struct Entry: Equatable {
        /// Nil for the entry of all that have none.
        var machine: String?
        var login: String?
        var password: String?
        var account: String?
    }

    /// In the order of the file; the one for all others, which has no machine, comes last.
    let entries: [Entry]

    /// Reads the bytes of a file.
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
        // What others write there, and no rule for whom an entry is: hosts alone decide.
        "port": { _, _ in }, "protocol": { _, _ in },
    ]

    /// The first entry for a host, or the one for all that have none.
    ///
    /// - Parameter isSame: Whether the name of a machine is the host's.
    func entry(where isSame: (String) -> Bool) -> Entry? {
        entries.first { $0.machine.map(isSame) ?? true }
    }
}

extension NetrcFile.Entry {
    var isDefault: Bool { machine == nil }
}

/// Takes a file apart into words.
private struct NetrcScanner {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1

    init(_ bytes: some Sequence<UInt8>) {
        self.bytes = Array(bytes)
        // What some editors begin UTF-8 with.
        if self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    /// The next keyword and its line; nil at the end.
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

    /// What belongs to a keyword.
    ///
    /// - Parameter keyword: The line that the keyword stands in.
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
