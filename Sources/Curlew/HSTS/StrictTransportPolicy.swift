// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The value of a `Strict-Transport-Security` field (RFC 6797 §6.1).
struct StrictTransportPolicy: Sendable, Equatable {
    /// The seconds of `max-age`; 0 ends the policy.
    let maxAge: Int64
    let includesSubdomains: Bool

    /// The maximum age in seconds: one year, as in Chrome.
    ///
    /// The limit keeps one server from staying in a store for much longer than the others.
    private static let maximumAge: Int64 = 31_536_000
    /// The maximum length of a value in bytes.
    private static let maximumLength = 1024

    /// Parses a value; nil when it is too long, when `max-age` is missing, or when a directive is invalid or repeated,
    /// so that the field is ignored.
    init?(_ text: String) {
        guard text.utf8.count <= Self.maximumLength else { return nil }
        var age: Int64?
        var includesSubdomains = false
        var names: Set<String> = []
        for part in Self.directives(of: text) {
            guard let directive = Directive(part) else { return nil }
            guard !directive.name.isEmpty else { continue }
            guard names.insert(directive.name).inserted else { return nil }
            switch directive.name {
            case "max-age":
                guard let digits = directive.value, !digits.isEmpty, digits.utf8.allSatisfy(ByteSet.digits.contains)
                else { return nil }
                age = min(Int64(digits) ?? .max, Self.maximumAge)
            case "includesubdomains":
                guard directive.value == nil else { return nil }
                includesSubdomains = true
            default: break
            }
        }
        guard let age else { return nil }
        maxAge = age
        self.includesSubdomains = includesSubdomains
    }

    /// Splits a value at the semicolons that are not within quotation marks.
    private static func directives(of text: String) -> [Substring] {
        var (isQuoted, isEscaped) = (false, false)
        return text.split(omittingEmptySubsequences: false) { character in
            if isEscaped {
                isEscaped = false
            } else if isQuoted, character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if !isQuoted {
                return character == ";"
            }
            return false
        }
    }

    private struct Directive {
        /// The name in lower case; empty for an empty directive.
        let name: String
        /// The value without quotation marks; nil without "=".
        let value: String?

        init?(_ part: Substring) {
            let part = Self.trimmed(part)
            guard let equals = part.firstIndex(of: "=") else {
                guard part.isEmpty || String(part).isToken else { return nil }
                (name, value) = (part.lowercased(), nil)
                return
            }
            let written = Self.trimmed(part[..<equals])
            let value = Self.trimmed(part[part.index(after: equals)...])
            guard String(written).isToken else { return nil }
            name = written.lowercased()
            if value.hasPrefix("\"") {
                guard value.count > 1, value.hasSuffix("\"") else { return nil }
                self.value = String(value.dropFirst().dropLast()).replacing("\\", with: "")
            } else {
                guard String(value).isToken else { return nil }
                self.value = String(value)
            }
        }

        private static func trimmed(_ text: Substring) -> Substring {
            var text = text.drop { $0 == " " || $0 == "\t" }
            while let last = text.last, last == " " || last == "\t" { text.removeLast() }
            return text
        }
    }
}
