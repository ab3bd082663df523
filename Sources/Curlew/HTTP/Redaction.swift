// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The text that replaces a secret in descriptions.
package let redaction = "<redacted>"

/// Returns a URL that is safe to show: without user-info, with "<redacted>" for every query value, every path parameter
/// and the fragment, and with control characters escaped.
///
/// The text may be invalid. Ambiguous text is read cautiously: the text before an "@" is hidden wherever it could be
/// user-info.
/// - Parameter names: Names in the query, as they are written, whose values may be shown.
package func redactedURL(_ text: String, showingQueryOf names: Set<String> = []) -> String {
    let bytes = text.utf8
    let (start, isAuthority) = authorityStart(in: bytes)
    var rest = bytes[start...]
    if let at = isAuthority ? userInfoEnd(in: rest) : passwordEnd(in: rest) { rest = rest[bytes.index(after: at)...] }

    let fragment = rest.firstIndex(of: UInt8(ascii: "#"))
    let query = rest[..<(fragment ?? rest.endIndex)].firstIndex(of: UInt8(ascii: "?"))
    var result = String(text[..<start])
    result += redactedPath(rest[..<(query ?? fragment ?? rest.endIndex)])
    if let query {
        let items = bytes[bytes.index(after: query)..<(fragment ?? rest.endIndex)]
        result += "?" + redactedQuery(items, showing: names)
    }
    if fragment != nil { result += "#" + redaction }
    return result.escapingControls
}

/// Returns a query that is safe to show: with "<redacted>" for every value, and with control characters escaped.
package func redactedQuery(_ text: String) -> String {
    redactedQuery(text.utf8[...], showing: []).escapingControls
}

/// Returns the position where an authority could begin, and whether an authority is likely there.
///
/// Schemes without a colon, with too few or too many slashes, and with backslashes count as schemes, too. A single
/// slash without a scheme begins a path, in which only a user with a password counts as user-info.
private func authorityStart(in bytes: String.UTF8View) -> (start: String.Index, isAuthority: Bool) {
    let wordEnd = bytes.firstIndex(where: wordEnds.contains) ?? bytes.endIndex
    let word = bytes[..<wordEnd]
    let gap = bytes[wordEnd...].prefix { $0 <= UInt8(ascii: " ") || separators.contains($0) }
    let slashes = gap.filter { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }.count
    let name = String(decoding: word.filter { $0 > UInt8(ascii: " ") }.map(\.asciiLowercased), as: UTF8.self)
    let isWeb = name == "http" || name == "https"
    let hasColon = gap.first == UInt8(ascii: ":")
    if word.contains(UInt8(ascii: "@")) { return (bytes.startIndex, true) }
    if !gap.isEmpty, isWeb || slashes > 1 || (hasColon && slashes > 0) { return (gap.endIndex, true) }
    return slashes == 1 && !hasColon ? (gap.endIndex, false) : (bytes.startIndex, true)
}

private let wordEnds = ByteSet(":/\\?#")
private let separators = ByteSet(":/\\")

/// Returns the position of the "@" that ends the user-info.
///
/// A password with an unescaped "/", "?" or "#" makes the URL invalid, and the first half of the password looks like a
/// port. Then everything up to the last "@" counts as user-info.
private func userInfoEnd(in rest: Substring.UTF8View) -> String.Index? {
    let authority = segment(of: rest)
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) { return at }
    var host = authority
    if authority.first == UInt8(ascii: "["), let end = authority.firstIndex(of: UInt8(ascii: "]")) {
        host = authority[end...]
    }
    guard let colon = host.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let port = host[host.index(after: colon)...]
    return !port.isEmpty && port.allSatisfy(ByteSet.digits.contains) ? nil : rest.lastIndex(of: UInt8(ascii: "@"))
}

/// Returns the position of the "@" after a user and a password in the first segment of a path.
private func passwordEnd(in rest: Substring.UTF8View) -> String.Index? {
    let first = segment(of: rest)
    guard let at = first.lastIndex(of: UInt8(ascii: "@")) else { return nil }
    return first[..<at].contains(UInt8(ascii: ":")) ? at : nil
}

private func segment(of rest: Substring.UTF8View) -> Substring.UTF8View {
    rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
}

/// Returns a path without the user-info of a URL in it, and with "<redacted>" for the parameters after a ";" in a
/// segment.
private func redactedPath(_ path: Substring.UTF8View) -> String {
    var shown = Substring(path)
    if let at = path.lastIndex(of: UInt8(ascii: "@")),
        let colon = path[..<at].indices.first(where: { path[$0..<at].starts(with: "://".utf8) })
    {
        shown = Substring(path[..<colon]) + "://" + Substring(path[path.index(after: at)...])
    }
    return shown.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { segment in
        let parts = segment.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        return ([String(Substring(parts[0]))] + parts.dropFirst().map { redactedItem($0) }).joined(separator: ";")
    }.joined(separator: "/")
}

private func redactedQuery(_ items: Substring.UTF8View, showing names: Set<String>) -> String {
    items.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        .map { redactedItem($0, showing: names) }.joined(separator: "&")
}

/// Returns "name=<redacted>"; an item without a name is redacted as a whole.
private func redactedItem(_ item: Substring.UTF8View, showing names: Set<String> = []) -> String {
    if item.isEmpty { return "" }
    let equals = item.firstIndex(of: UInt8(ascii: "="))
    let isShown = !names.isEmpty && names.contains(String(Substring(item[..<(equals ?? item.endIndex)])))
    if isShown { return String(Substring(item)) }
    return (equals.map { String(Substring(item[...$0])) } ?? "") + redaction
}
