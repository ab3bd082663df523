// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A cache of the URLs that a session used last, checked, normalised and prepared for its loop; a look-up costs one
/// hash and one comparison.
///
/// Swift strings of different bytes can be equal and still be different URLs. No two ASCII strings of the same length
/// are, so only ASCII URLs are kept, and lengths are compared.
struct PlannedURLCache {
    private static let size = 256
    /// The entry used last, which is usually also the entry for the next look-up.
    private var last: (text: String, url: PlannedURL)?
    private var entries = [(text: String, url: PlannedURL)?](repeating: nil, count: size)

    private static func slot(of text: String) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: text.hashValue) % UInt(size))
    }

    /// Returns the cached value for a URL as given by the request.
    mutating func known(_ text: String) -> PlannedURL? {
        if let last, PlannedURLCache.isSame(text, last.text) { return last.url }
        guard let entry = entries[PlannedURLCache.slot(of: text)], PlannedURLCache.isSame(text, entry.text) else {
            return nil
        }
        last = entry
        return entry.url
    }

    private static func isSame(_ text: String, _ ascii: String) -> Bool {
        text.utf8.count == ascii.utf8.count && text == ascii
    }

    mutating func keep(_ url: PlannedURL, for text: String) {
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return }
        entries[PlannedURLCache.slot(of: text)] = (text, url)
    }
}
