// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Request.QueryEncoder {
    /// Returns the text of a plain value; nil for a value that has to encode itself.
    func plainText(of value: some Encodable) -> String? {
        switch value {
        case let value as String: value
        case let value as Bool: bools == .numeric ? (value ? "1" : "0") : String(value)
        case let value as any FixedWidthInteger: value.description
        case let value as any BinaryFloatingPoint: Self.decimal("\(value)")
        case let value as Decimal: value.description
        case let value as Date: text(of: value)
        case let value as Data: text(of: value)
        case let value as URL: value.absoluteString
        case let value as UUID: value.uuidString
        default: nil
        }
    }

    /// Returns the bytes of `Data`, for formats that do not need its text; nil for another value.
    func bytes<T>(of value: T) -> [UInt8]? {
        guard T.self == Data.self, let data = value as? Data else { return nil }
        return Array(data)
    }

    private func text(of date: Date) -> String {
        switch dates {
        // `Date.description` is wrong for the first years and missing for years of six digits.
        case .description: date.formatted(.iso8601).replacing("T", with: " ").replacing("Z", with: " +0000")
        case .iso8601: date.formatted(.iso8601)
        case .secondsSince1970: Self.decimal("\(date.timeIntervalSince1970)")
        case .millisecondsSince1970: Self.decimal("\((date.timeIntervalSince1970 * 1000).rounded())")
        }
    }

    private func text(of data: Data) -> String {
        let text = data.base64EncodedString()
        switch self.data {
        case .base64: return text
        case .base64URL: return text.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
    }

    /// Returns the description of a floating-point number without the exponent, and without the fraction of a whole
    /// number: "0.00000015" for "1.5e-07", "48" for "48.0".
    static func decimal(_ description: String) -> String {
        guard let mark = description.firstIndex(of: "e"),
            let exponent = Int(description[description.index(after: mark)...])
        else { return description.hasSuffix(".0") ? String(description.dropLast(2)) : description }
        let sign = description.hasPrefix("-") ? "-" : ""
        let parts = description[..<mark].dropFirst(sign.count).split(separator: ".")
        let digits = parts.joined()
        let point = parts[0].count + exponent
        if point <= 0 { return sign + "0." + String(repeating: "0", count: -point) + digits }
        return sign + digits + String(repeating: "0", count: point - digits.count)
    }
}

extension Request.QueryEncoder.KeyStyle {
    /// Returns a name in this style.
    func name(_ text: String) -> String {
        switch self {
        case .asIs: text
        case .snakeCase: Self.separated(text, by: "_")
        case .kebabCase: Self.separated(text, by: "-")
        case .camelCase: Self.joined(text)
        case .lowercase: text.lowercased()
        case .uppercase: text.uppercased()
        }
    }

    /// Returns a name in lower case with its words separated.
    ///
    /// A word begins at a capital letter after a lower-case letter or a digit, and at the last of several capital
    /// letters when a lower-case letter follows.
    private static func separated(_ text: String, by separator: Character) -> String {
        let letters = Array(text)
        var result = ""
        for (index, letter) in letters.enumerated() {
            if letter.isUppercase, index > 0 {
                let (before, after) = (letters[index - 1], index + 1 < letters.count ? letters[index + 1] : " ")
                let follows = before.isLowercase || before.isNumber
                if follows || (before.isUppercase && after.isLowercase) { result.append(separator) }
            }
            result += letter.lowercased()
        }
        return result
    }

    private static func joined(_ text: String) -> String {
        let lead = text.prefix { $0 == "_" || $0 == "-" }
        let words = text.split { $0 == "_" || $0 == "-" }
        guard words.count > 1 else { return text }
        let rest = words.dropFirst().map { $0.prefix(1).uppercased() + $0.dropFirst().lowercased() }
        return lead + words[0].lowercased() + rest.joined()
    }
}
