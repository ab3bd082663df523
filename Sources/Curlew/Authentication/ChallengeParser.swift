// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Parses challenges, and parameter lists like those of `Authentication-Info` (RFC 9110 §11.2, §11.6.1).
///
/// The grammar has commas between challenges and between parameters: a word followed by "=" is a parameter, any other
/// word after a comma begins a challenge. Text that fits neither is skipped up to the next comma outside of quotes. The
/// parser accepts missing commas between parameters, and values without the required quotes. It reads each byte at most
/// a few times.
struct ChallengeParser {
    /// The maximum number of challenges that are read from a response.
    static let maximumChallenges = 32
    /// The maximum total length of the names and values of a challenge, in bytes.
    static let longestChallenge = 8192

    private struct Draft {
        let scheme: String
        var parameters: [String: String] = [:]
        var token68: String?
        var length: Int
    }

    private let bytes: [UInt8]
    private var position = 0
    private var current: Draft?
    private var found: [ChallengeAuthentication.Challenge] = []

    private init(_ value: String) { bytes = Array(value.utf8) }

    /// Returns the challenges in the values of one field.
    static func challenges(in values: [String]) -> [ChallengeAuthentication.Challenge] {
        var all: [ChallengeAuthentication.Challenge] = []
        for value in values where all.count < maximumChallenges {
            var parser = ChallengeParser(value)
            parser.parse()
            all += parser.found
        }
        return Array(all.prefix(maximumChallenges))
    }

    /// Returns the parameters of a field that contains only parameters, by names in lower case.
    static func parameters(in value: String) -> [String: String] {
        var parser = ChallengeParser(value)
        parser.current = Draft(scheme: "", length: 0)
        parser.parse()
        return parser.found.first?.parameters ?? [:]
    }

    private mutating func parse() {
        // Whether a comma, or the start of the value, precedes the next word.
        var isElement = true
        while found.count < Self.maximumChallenges, skipSeparators(&isElement) {
            guard let word = token() else {
                skipElement()
                continue
            }
            skipSpace()
            if take(UInt8(ascii: "=")) {
                addParameter(word)
            } else if isElement {
                begin(word)
            } else {
                skipElement()
            }
            isElement = false
        }
        finish()
    }

    // MARK: Parts

    private mutating func begin(_ scheme: String) {
        finish()
        current = Draft(scheme: scheme, token68: token68(), length: scheme.utf8.count)
    }

    private mutating func finish() {
        defer { current = nil }
        guard let current, current.length + (current.token68?.utf8.count ?? 0) <= Self.longestChallenge else { return }
        found.append(
            ChallengeAuthentication.Challenge(.init(current.scheme), current.parameters, token68: current.token68))
    }

    private mutating func addParameter(_ name: String) {
        skipSpace()
        guard let value = position < bytes.count && bytes[position] == UInt8(ascii: "\"") ? quotedString() : bareValue()
        else { return }
        let key = name.asciiLowercased
        current?.length += key.utf8.count + value.count
        if let current, current.parameters[key] != nil || current.length > Self.longestChallenge { return }
        current?.parameters[key] = String(decoding: value, as: UTF8.self)
    }

    // MARK: Words

    /// Skips white space and commas; returns false at the end.
    private mutating func skipSeparators(_ hasComma: inout Bool) -> Bool {
        while position < bytes.count {
            if bytes[position] == UInt8(ascii: ",") {
                hasComma = true
            } else if !bytes[position].isLinearSpace {
                return true
            }
            position += 1
        }
        return false
    }

    private mutating func skipSpace() { while position < bytes.count, bytes[position].isLinearSpace { position += 1 } }

    /// Skips the rest of the text up to the next comma outside of quotes.
    private mutating func skipElement() {
        while position < bytes.count, bytes[position] != UInt8(ascii: ",") {
            if bytes[position] == UInt8(ascii: "\"") { _ = quotedString() } else { position += 1 }
        }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func run(while isMember: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count, isMember(bytes[position]) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func token() -> String? {
        let word = run(while: ByteSet.token.contains)
        return word.isEmpty ? nil : String(decoding: word, as: UTF8.self)
    }

    /// Reads a value without quotes, up to white space or a comma.
    ///
    /// The method accepts more than the tokens of the grammar, since servers send Base64 nonces and paths without
    /// quotes.
    private mutating func bareValue() -> [UInt8] {
        Array(run { !$0.isLinearSpace && $0 != UInt8(ascii: ",") })
    }

    /// Reads a quoted string and returns it without quotes and escapes; an unterminated string returns nil and consumes
    /// the rest.
    private mutating func quotedString() -> [UInt8]? {
        position += 1
        var text: [UInt8] = []
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return text }
            if byte == UInt8(ascii: "\\"), position < bytes.count {
                text.append(bytes[position])
                position += 1
            } else {
                text.append(byte)
            }
        }
        return nil
    }

    private static let token68 = ByteSet.letters.union(.digits).union(ByteSet("-._~+/"))

    /// Reads the value that a scheme has in place of parameters; returns nil, and reads nothing, when parameters
    /// follow.
    private mutating func token68() -> String? {
        let start = position
        let word = run(while: Self.token68.contains)
        _ = run { $0 == UInt8(ascii: "=") }
        let end = position
        skipSpace()
        guard !word.isEmpty, position == bytes.count || bytes[position] == UInt8(ascii: ",") else {
            position = start
            return nil
        }
        return String(decoding: bytes[start..<end], as: UTF8.self)
    }
}
