// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A short excerpt of a JSON text, valid or not, without the values of secrets.
enum JSONExcerpt {
    /// The number of bytes before and after the position.
    private static let reach = 32

    /// Returns the text around a byte, on one line, without the values of secrets.
    ///
    /// Scans the text from its start, because the name before a value decides whether the value is a secret.
    static func text(around offset: Int, of text: Span<UInt8>) -> String {
        let window = max(0, offset - reach)..<min(text.count, offset + reach)
        var tokens = Tokens()
        var shown: [UInt8] = []
        while let token = tokens.next(in: text), token.range.lowerBound < window.upperBound {
            guard token.range.upperBound > window.lowerBound else { continue }
            if token.isHidden {
                if !shown.hasSuffix(redaction) { shown += Array(redaction.utf8) }
            } else {
                let part = token.range.clamped(to: window)
                for place in part { shown.append(text[place]) }
            }
        }
        return (window.lowerBound > 0 ? "…" : "") + String(decoding: shown, as: UTF8.self).escapingControls
            + (window.upperBound < text.count ? "…" : "")
    }

    /// Returns whether a member's name marks its value as a secret.
    static func isSecret(_ name: some Sequence<UInt8>) -> Bool {
        // An escape may hide a letter.
        if name.contains(UInt8(ascii: "\\")) { return true }
        let letters = name.map { $0 | 0x20 }.filter { 0x61...0x7A ~= $0 }
        let text = String(decoding: letters, as: UTF8.self)
        return secrets.contains { text.contains($0) }
    }

    private static let secrets = [
        "password", "passwd", "passphrase", "secret", "token", "authorization", "credential", "cookie", "session",
        "apikey", "privatekey", "accesskey", "signature", "assertion", "pincode", "cvv", "cvc", "iban", "ssn",
    ]

    private struct Token {
        let range: Range<Int>
        let isHidden: Bool
    }

    /// The tokens of a text.
    ///
    /// Accepts any bytes, valid or not.
    private struct Tokens {
        private var place = 0
        private var depth = 0
        /// The depth around the open secret container; nil if no secret container is open.
        private var secretDepth: Int?
        private var lastString: Range<Int>?
        private var isSecretNext = false

        mutating func next(in text: Span<UInt8>) -> Token? {
            guard place < text.count else { return nil }
            let start = place
            let byte = text[place]
            place += 1
            switch byte {
            case UInt8(ascii: "\""):
                skipString(in: text)
                lastString = start + 1..<max(start + 1, place - 1)
                return Token(range: start..<place, isHidden: isSecret)
            case UInt8(ascii: ":"):
                if secretDepth == nil, let name = lastString {
                    isSecretNext = JSONExcerpt.isSecret(name.map { text[$0] })
                }
                return Token(range: start..<place, isHidden: secretDepth != nil)
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                if isSecretNext { secretDepth = depth }
                isSecretNext = false
                depth += 1
                return Token(range: start..<place, isHidden: secretDepth != nil)
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                let isHidden = secretDepth != nil
                if let outside = secretDepth, depth <= outside { secretDepth = nil }
                isSecretNext = false
                return Token(range: start..<place, isHidden: isHidden)
            case UInt8(ascii: ","), 0x20, 0x09, 0x0A, 0x0D:
                if byte == UInt8(ascii: ",") { isSecretNext = false }
                return Token(range: start..<place, isHidden: secretDepth != nil)
            default:
                while place < text.count, !Self.ends.contains(text[place]) { place += 1 }
                lastString = start..<place
                // Outside of JSON, a name and its value may be one word: `password=…`.
                let isHidden = JSONExcerpt.isSecret((start..<place).map { text[$0] }) && place - start > 12
                return Token(range: start..<place, isHidden: isHidden || isSecret)
            }
        }

        private static let ends = ByteSet("\",:{}[] \t\r\n")

        /// Whether the next token belongs to a secret.
        private var isSecret: Bool { secretDepth != nil || isSecretNext }

        private mutating func skipString(in text: Span<UInt8>) {
            while place < text.count {
                let byte = text[place]
                place += byte == UInt8(ascii: "\\") ? 2 : 1
                if byte == UInt8(ascii: "\"") { break }
            }
            place = min(place, text.count)
        }
    }
}

extension [UInt8] {
    fileprivate func hasSuffix(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
