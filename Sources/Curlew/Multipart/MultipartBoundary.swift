// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What stands between the parts of a multipart body (RFC 2046 §5.1.1).
///
/// ```swift
/// let form = MultipartForm(boundary: MultipartBoundary("for a test") ?? MultipartBoundary()) { Part("a", "1") }
/// ```
public struct MultipartBoundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary without the hyphens in front.
    public let text: String

    /// A boundary with 128 random bits, which no part contains but by the wildest chance.
    public init() {
        var chance = SystemRandomNumberGenerator()
        let digits = (0..<2).map { _ in
            let half = String(chance.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - half.count) + half
        }
        text = "curlew-" + digits.joined()
    }

    /// A boundary of one's own, which must stand nowhere in the parts; nobody looks for it there.
    ///
    /// - Parameter text: 1 to 70 of the letters, digits, spaces and `'()+_,-./:=?`, no space at the end.
    /// - Returns: Nil when it is none.
    public init?(_ text: String) {
        guard (1...70).contains(text.utf8.count), text.utf8.last != 0x20, Self.members.containsAll(of: text) else {
            return nil
        }
        self.text = text
    }

    /// The text.
    public var description: String { text }

    /// `bchars` of RFC 2046 §5.1.1.
    private static let members = ByteSet.letters.union(.digits).union(ByteSet("'()+_,-./:=? "))
}
