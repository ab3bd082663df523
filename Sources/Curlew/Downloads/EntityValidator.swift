// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension ResumeToken {
    /// A strong validator, which differs between any two states of a resource that differ in a byte (RFC 9110 §8.8.1).
    public enum Validator: Sendable, Hashable, Codable {
        /// A strong entity tag, with its quotes.
        case tag(String)
        /// The verbatim value of the `Last-Modified` field.
        case lastModified(String)

        /// Creates the strong validator of a response; nil when the response has no validator or a weak entity tag.
        ///
        /// `Last-Modified` counts only if `Date` is at least a second later (RFC 9110 §8.8.2.2) and the response has no
        /// entity tag (§13.1.5).
        package init?(_ head: ResponseHead) {
            if let tag = head[.etag]?.trimmingSpace {
                guard tag.utf8.count >= 2, tag.hasPrefix("\""), tag.hasSuffix("\"") else { return nil }
                self = .tag(tag)
                return
            }
            guard let text = head[.lastModified], let changed = HTTPDate(text),
                let made = head[.date].flatMap({ HTTPDate($0) }), made.seconds > changed.seconds
            else { return nil }
            self = .lastModified(text)
        }

        /// The value for the `If-Range` field.
        package var field: String {
            switch self {
            case .tag(let tag): tag
            case .lastModified(let date): date
            }
        }

        /// Returns whether a response has a validator of the same kind with a different value.
        package func contradicts(_ head: ResponseHead) -> Bool {
            switch self {
            case .tag(let tag): head[.etag].map { $0.trimmingSpace != tag } ?? false
            case .lastModified(let date): head[.lastModified].map { $0 != date } ?? false
            }
        }
    }
}
