// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The value of an `Alt-Svc` field (RFC 7838 §3).
///
/// The parser skips malformed members and keeps the well-formed ones, because a future extension of one member must not
/// hide the others. A field without a well-formed member is invalid.
enum AlternativeServiceField: Sendable, Equatable {
    /// All alternatives of the origin are invalid, including those in the same field.
    case clear
    /// The alternatives that replace the earlier ones, in the order of the server.
    case alternatives([Alternative])

    /// A member of the list.
    struct Alternative: Sendable, Equatable {
        /// The name of the protocol without percent-encoding.
        let protocolID: String
        /// The host in normal form, without brackets; nil for the host of the origin.
        let host: String?
        let port: UInt16
        /// The lifetime in seconds, since the origin generated the response.
        var maxAge: Int64 = 86_400
        var isPersistent = false
    }

    /// The maximum length of a value in bytes.
    static let maximumLength = 4096
    /// The maximum number of alternatives of a field; the server prefers the first ones.
    static let maximumCount = 16
    /// The maximum lifetime in seconds: one year, as for HSTS.
    static let maximumAge: Int64 = 31_536_000

    /// Parses a value, or several values joined by commas.
    ///
    /// The result is nil for an invalid value and for one that is too long. Complexity: O(*n*).
    init?(_ text: String) {
        guard text.utf8.count <= Self.maximumLength else { return nil }
        var parser = AlternativeServiceParser(text)
        var found: [Alternative] = []
        while parser.skipSeparators() {
            switch parser.member() {
            case .clear:
                self = .clear
                return
            case .alternative(let alternative): if found.count < Self.maximumCount { found.append(alternative) }
            case nil: parser.skipMember()
            }
        }
        if found.isEmpty { return nil }
        self = .alternatives(found)
    }
}

/// A cursor over the bytes of an `Alt-Svc` field.
private struct AlternativeServiceParser {
    enum Member {
        case clear
        case alternative(AlternativeServiceField.Alternative)
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    // MARK: Members

    /// Skips white space and commas, since a list may have empty members (RFC 9110 §5.6.1); returns false at the end.
    mutating func skipSeparators() -> Bool {
        _ = run { $0.isLinearSpace || $0 == UInt8(ascii: ",") }
        return position < bytes.count
    }

    /// Skips the rest of a member, up to the next comma outside of quotes.
    mutating func skipMember() {
        while let byte = current, byte != UInt8(ascii: ",") {
            if byte == UInt8(ascii: "\"") { _ = quotedString() } else { position += 1 }
        }
    }

    /// Reads `clear`, or a protocol with its host, port and parameters.
    ///
    /// The result is nil for a malformed member; the position is then outside of quotes.
    mutating func member() -> Member? {
        guard let name = token() else { return nil }
        if name == "clear", isAtMemberEnd { return .clear }
        guard take(UInt8(ascii: "=")), let authority = quotedString(),
            let (host, port) = Self.hostAndPort(authority), let protocolID = Self.protocolID(name)
        else { return nil }
        var alternative = AlternativeServiceField.Alternative(protocolID: protocolID, host: host, port: port)
        guard readParameters(of: &alternative), isAtMemberEnd else { return nil }
        return .alternative(alternative)
    }

    /// Reads the parameters `ma` and `persist` (RFC 7838 §3.1); returns false after a malformed parameter.
    ///
    /// Only the first `ma` has an effect. Unknown parameters are ignored, and so is `persist` with a value other than
    /// "1".
    private mutating func readParameters(of alternative: inout AlternativeServiceField.Alternative) -> Bool {
        var hasAge = false
        skipSpace()
        while take(UInt8(ascii: ";")) {
            skipSpace()
            // A parameter may be empty (RFC 9110 §5.6.6).
            if let name = token() {
                guard take(UInt8(ascii: "=")), let value = value() else { return false }
                switch name.asciiLowercased {
                case "ma" where !hasAge:
                    guard let seconds = Self.number(value[...]) else { return false }
                    alternative.maxAge = min(seconds, AlternativeServiceField.maximumAge)
                    hasAge = true
                case "persist" where value == [UInt8(ascii: "1")]: alternative.isPersistent = true
                default: break
                }
            }
            skipSpace()
        }
        return true
    }

    /// Whether only white space is left of the member.
    private var isAtMemberEnd: Bool {
        let next = bytes[position...].first { !$0.isLinearSpace }
        return next == nil || next == UInt8(ascii: ",")
    }

    // MARK: Values

    private static let unescaped = ByteSet.letters.union(.digits).union(ByteSet("!#$&'*+-.^_`|~"))

    /// Decodes the name of a protocol.
    ///
    /// The result is nil if the name is not in the only valid spelling (RFC 7838 §3), is not UTF-8, or has more than
    /// 255 bytes (RFC 7301 §3.1).
    private static func protocolID(_ written: String) -> String? {
        guard let bytes = written[...].percentDecoded, bytes.count <= 255,
            let name = String(validating: bytes, as: UTF8.self), name.percentEncoded(keeping: unescaped) == written
        else { return nil }
        return name
    }

    /// Splits an optional host and a port (RFC 7838 §3); nil for an invalid host, and for a port that is not from 1 to
    /// 65535.
    private static func hostAndPort(_ authority: [UInt8]) -> (host: String?, port: UInt16)? {
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            let port = number(authority[(colon + 1)...]).flatMap({ UInt16(exactly: $0) }), port > 0
        else { return nil }
        if colon == 0 { return (nil, port) }
        guard let host = host(String(decoding: authority[..<colon], as: UTF8.self)) else { return nil }
        return (host, port)
    }

    /// Returns a host in normal form and without brackets; nil for an invalid host, such as a name that is not ASCII
    /// (RFC 3986 §3.2.2).
    private static func host(_ written: String) -> String? {
        if written.hasPrefix("["), written.hasSuffix("]") {
            return (try? HostName.normalIPv6(written.dropFirst().dropLast())).map(String.init)
        }
        return (try? HostName.normal(written[...], names: nil)).map(String.init)
    }

    /// Parses a number that has only digits, such as `delta-seconds` (RFC 9111 §1.2.2).
    ///
    /// A number that is too large becomes the maximum.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.allSatisfy(ByteSet.digits.contains) else { return nil }
        return Int64(String(decoding: digits, as: UTF8.self)) ?? .max
    }

    // MARK: Words

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    private mutating func run(while isMember: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = position
        while let byte = current, isMember(byte) { position += 1 }
        return bytes[start..<position]
    }

    private mutating func skipSpace() { _ = run(while: \.isLinearSpace) }

    private mutating func token() -> String? {
        let word = run(while: ByteSet.token.contains)
        return word.isEmpty ? nil : String(decoding: word, as: UTF8.self)
    }

    /// Reads the value of a parameter: a token or a quoted string.
    private mutating func value() -> [UInt8]? {
        if current == UInt8(ascii: "\"") { return quotedString() }
        let word = run(while: ByteSet.token.contains)
        return word.isEmpty ? nil : Array(word)
    }

    /// Reads a quoted string up to its end, and returns it without quotes and escapes (RFC 9110 §5.6.4).
    ///
    /// The result is nil if no string starts here, or if the string has no end or has a control character.
    private mutating func quotedString() -> [UInt8]? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var text: [UInt8] = []
        var isValid = true
        while var byte = current {
            position += 1
            if byte == UInt8(ascii: "\"") { return isValid ? text : nil }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = current else { return nil }
                position += 1
                byte = escaped
            }
            if byte.isControl, byte != 0x09 { isValid = false }
            text.append(byte)
        }
        return nil
    }
}
