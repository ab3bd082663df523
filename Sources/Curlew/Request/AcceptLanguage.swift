// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The languages of whoever runs the program, as `Accept-Language` says them (RFC 9110 §12.5.4).
///
/// Requests tell no languages unless the fields of a session, a client or a call do.
///
/// ```swift
/// let session = Session { $0.fields[.acceptLanguage] = AcceptLanguage.system }
/// ```
public enum AcceptLanguage {
    /// The field of this process's environment, read once; nil when it asks for no language.
    ///
    /// `LC_ALL`, else `LC_MESSAGES`, else `LANG` is the locale, before which `LANGUAGE` may name others: up to six
    /// languages with falling weights.
    public static let system: String? = field(environment: ProcessInfo.processInfo.environment)

    /// The value of the field: tags from the most to the least wanted, at most six; nil when there is none.
    ///
    /// `LC_ALL`, else `LC_MESSAGES`, else `LANG` is the locale (POSIX.1-2024 §8.2). The locales C and POSIX ask for no
    /// language. In any other, the list in `LANGUAGE` comes first, as in GNU gettext. What is no locale is ignored.
    static func field(environment: [String: String]) -> String? {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"]
        guard let locale = names.lazy.compactMap({ environment[$0] }).first(where: { !$0.isEmpty }),
            !isUntranslated(locale)
        else { return nil }
        let list = environment["LANGUAGE", default: ""].split(separator: ":").compactMap(tag)
        var tags: [String] = []
        for tag in list.isEmpty ? [tag(locale[...])].compactMap(\.self) : list where !tags.contains(tag) {
            tags.append(tag)
        }
        guard !tags.isEmpty else { return nil }
        return zip(tags, qualities).map { "\($0);q=\($1)" }.joined(separator: ", ")
    }

    private static let qualities = ["1", "0.9", "0.8", "0.7", "0.6", "0.5"]

    /// The scripts that locales name by a modifier, by those names.
    private static let scripts = ["latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva"]

    private static func isUntranslated(_ locale: String) -> Bool {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        return name == "C" || name == "POSIX"
    }

    /// The language tag (RFC 5646) of a locale: `de_AT.UTF-8@euro` is `de-AT`, `sr_RS@latin` is `sr-Latn-RS`; nil for
    /// what is none.
    private static func tag(_ locale: Substring) -> String? {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        let modifier = locale.firstIndex(of: "@").map { String(locale[locale.index(after: $0)...]) }
        var parts = name.split(omittingEmptySubsequences: false) { $0 == "_" || $0 == "-" }[...]
        guard let language = parts.popFirst(), 2...3 ~= language.utf8.count, isLetters(language) else { return nil }
        var script = modifier.flatMap { scripts[$0] }
        if let part = parts.first, part.utf8.count == 4, isLetters(part) {
            script = part.prefix(1).uppercased() + part.dropFirst().lowercased()
            parts.removeFirst()
        }
        var tag = [language.lowercased(), script].compactMap(\.self)
        if let region = parts.popFirst() {
            let isNumber = region.utf8.count == 3 && ByteSet.digits.containsAll(of: String(region))
            guard isNumber || (region.utf8.count == 2 && isLetters(region)) else { return nil }
            tag.append(region.uppercased())
        }
        return parts.isEmpty ? tag.joined(separator: "-") : nil
    }

    private static func isLetters(_ text: Substring) -> Bool { ByteSet.letters.containsAll(of: String(text)) }
}
