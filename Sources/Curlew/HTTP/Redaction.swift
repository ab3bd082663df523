// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What stands in descriptions in the place of a secret.
let redaction = "<redacted>"

/// A URL as it may be shown: without user-info, with "<redacted>" for every query value and for the fragment, and with
/// control characters escaped.
///
/// Takes any text, valid or not; the cautious reading wins where it is ambiguous.
/// - Parameter names: Names of the query, as they are written, whose values may be shown.
func redactedURL(_ text: String, showingQueryOf names: Set<String> = []) -> String {
    let bytes = text.utf8
    let authority = authorityStart(in: bytes)
    var rest = bytes[authority...]
    if let at = userInfoEnd(in: rest) { rest = rest[bytes.index(after: at)...] }

    let fragment = rest.firstIndex(of: UInt8(ascii: "#"))
    let query = rest[..<(fragment ?? rest.endIndex)].firstIndex(of: UInt8(ascii: "?"))
    var result = String(text[..<authority])
    result += text[rest.startIndex..<(query ?? fragment ?? rest.endIndex)]
    if let query {
        let items = bytes[bytes.index(after: query)..<(fragment ?? rest.endIndex)]
        result += "?" + redactedQuery(items, showing: names)
    }
    if fragment != nil { result += "#" + redaction }
    return result.escapingControls
}

/// A query as it may be shown: with "<redacted>" for every value, and with control characters escaped.
func redactedQuery(_ text: String) -> String {
    redactedQuery(text.utf8[...], showing: []).escapingControls
}

private func authorityStart(in bytes: String.UTF8View) -> String.Index {
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
        return bytes.startIndex
    }
    return bytes.index(colon, offsetBy: 3)
}

/// The "@" that ends the user-info.
///
/// A password with an unescaped "/", "?" or "#" makes the URL invalid and its first half look like a port; then
/// everything up to the last "@" is taken for user-info.
private func userInfoEnd(in rest: Substring.UTF8View) -> String.Index? {
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
    let authority = rest[..<(end ?? rest.endIndex)]
    if let at = authority.lastIndex(of: UInt8(ascii: "@")) { return at }
    guard authority.first != UInt8(ascii: "["), let colon = authority.firstIndex(of: UInt8(ascii: ":")) else {
        return nil
    }
    let port = authority[authority.index(after: colon)...]
    return port.allSatisfy(ByteSet.digits.contains) ? nil : rest.lastIndex(of: UInt8(ascii: "@"))
}

private func redactedQuery(_ items: Substring.UTF8View, showing names: Set<String>) -> String {
    items.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).map { item in
        guard let equals = item.firstIndex(of: UInt8(ascii: "=")) else { return String(Substring(item)) }
        let isShown = !names.isEmpty && names.contains(String(Substring(item[..<equals])))
        return isShown ? String(Substring(item)) : String(Substring(item[...equals])) + redaction
    }.joined(separator: "&")
}
