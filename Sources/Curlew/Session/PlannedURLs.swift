// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The URLs that a session used last, checked, normalised and made ready for its loop: found by one hash and one
/// comparison.
///
/// Strings are equal that are spelled in different bytes, which are different URLs. Of ASCII no other spelling is as long,
/// so that no others are kept.
struct PlannedURLs {
    private static let size = 256
    /// The one that was asked for last, which is mostly the same again.
    private var last: (text: String, url: PlannedURL)?
    private var entries = [(text: String, url: PlannedURL)?](repeating: nil, count: size)

    private static func slot(of text: String) -> Int {
        Int(truncatingIfNeeded: UInt(bitPattern: text.hashValue) % UInt(size))
    }

    /// What was kept for a URL as it was given.
    mutating func known(_ text: String) -> PlannedURL? {
        if let last, PlannedURLs.isSame(text, last.text) { return last.url }
        guard let entry = entries[PlannedURLs.slot(of: text)], PlannedURLs.isSame(text, entry.text) else { return nil }
        last = entry
        return entry.url
    }

    private static func isSame(_ text: String, _ ascii: String) -> Bool {
        text.utf8.count == ascii.utf8.count && text == ascii
    }

    mutating func keep(_ url: PlannedURL, for text: String) {
        guard text.utf8.allSatisfy({ $0 < 0x80 }) else { return }
        entries[PlannedURLs.slot(of: text)] = (text, url)
    }
}

extension PlannedURL {
    convenience init(_ target: RequestTarget) {
        self.init(target.text, host: target.host, port: target.port, isSecure: target.scheme == .https)
    }
}
