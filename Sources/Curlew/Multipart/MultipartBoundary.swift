// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MultipartForm {
    /// The delimiter between the parts of a multipart body (RFC 2046 §5.1.1).
    ///
    /// ```swift
    /// let form = MultipartForm(boundary: MultipartForm.Boundary("for a test") ?? MultipartForm.Boundary()) {
    ///     MultipartForm.Part("a", "1")
    /// }
    /// ```
    public struct Boundary: Sendable, Hashable, CustomStringConvertible {
        /// The boundary, without the leading hyphens.
        public let text: String

        /// Creates a boundary with 128 random bits, which practically never occurs in a part.
        public init() {
            var chance = SystemRandomNumberGenerator()
            let digits = (0..<2).map { _ in
                let half = String(chance.next() as UInt64, radix: 16)
                return String(repeating: "0", count: 16 - half.count) + half
            }
            text = "curlew-" + digits.joined()
        }

        /// Creates a custom boundary, which must not occur in the parts; the form does not check this.
        ///
        /// - Parameter text: 1 to 70 letters, digits, spaces or characters of `'()+_,-./:=?`; the last character is not
        ///   a space.
        /// - Returns: Nil if the text is not a valid boundary.
        public init?(_ text: String) {
            guard (1...70).contains(text.utf8.count), text.utf8.last != 0x20, Self.members.containsAll(of: text) else {
                return nil
            }
            self.text = text
        }

        /// The text of the boundary.
        public var description: String { text }

        /// The characters of `bchars` (RFC 2046 §5.1.1).
        private static let members = ByteSet.letters.union(.digits).union(ByteSet("'()+_,-./:=? "))
    }
}
