// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The languages of the program's user as an `Accept-Language` value (RFC 9110 §12.5.4).
///
/// Requests send no languages unless the fields of a session, a client or a call contain them.
///
/// ```swift
/// let session = Session { $0.fields[.acceptLanguage] = AcceptLanguage.system }
/// ```
public enum AcceptLanguage {
    /// The field value for this process's environment, read once; nil when the environment requests no language.
    ///
    /// `LC_ALL`, else `LC_MESSAGES`, else `LANG` is the locale. `LANGUAGE` may list other languages that take its
    /// place: up to six languages with falling weights.
    public static let system: String? = field(environment: ProcessInfo.processInfo.environment)

    /// Returns the field value: at most six tags, from the most to the least preferred; nil when there is no tag.
    ///
    /// `LC_ALL`, else `LC_MESSAGES`, else `LANG` is the locale (POSIX.1-2024 §8.2). The locales C and POSIX request no
    /// language. For any other locale, the list in `LANGUAGE` takes precedence, as in GNU gettext. Invalid locales are
    /// ignored.
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

    /// Scripts by the locale modifiers that name them.
    private static let scripts = ["latin": "Latn", "cyrillic": "Cyrl", "devanagari": "Deva"]

    private static func isUntranslated(_ locale: String) -> Bool {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        return name == "C" || name == "POSIX"
    }

    /// Returns the language tag (RFC 5646) of a locale: `de_AT.UTF-8@euro` becomes `de-AT`, `sr_RS@latin` becomes
    /// `sr-Latn-RS`; nil for an invalid locale.
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
