// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Returns a URL with pairs appended to its query; the existing query stays, and the fragment stays at the end.
///
/// The URL may be invalid; a request to it fails later.
/// - Parameter query: Percent-encoded pairs without a leading "?" or "&"; when empty, the URL stays as it is.
func url(_ url: String, appending query: String) -> String {
    guard !query.isEmpty else { return url }
    let end = url.utf8.firstIndex(of: UInt8(ascii: "#")) ?? url.endIndex
    let mark = url.utf8[..<end].firstIndex(of: UInt8(ascii: "?"))
    let separator =
        switch mark {
        case nil: "?"
        case let mark? where url.utf8.index(after: mark) == end: ""
        case _: "&"
        }
    return url[..<end] + separator + query + url[end...]
}
