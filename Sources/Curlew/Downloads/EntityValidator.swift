// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What tells two states of a resource apart, byte for byte: a strong validator (RFC 9110 §8.8.1).
public enum EntityValidator: Sendable, Hashable, Codable {
    /// A strong entity tag, with its quotes.
    case tag(String)
    /// When it was changed last, as the field says it.
    case lastModified(String)

    /// The strong validator of a response; nil when it has none, or its entity tag is weak.
    ///
    /// A time of change counts when the response was made at least a second later (RFC 9110 §8.8.2.2), and there is no
    /// entity tag (§13.1.5).
    init?(_ head: ResponseHead) {
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

    /// What `If-Range` says.
    var field: String {
        switch self {
        case .tag(let tag): tag
        case .lastModified(let date): date
        }
    }

    /// Whether a response, as far as it says, is of another state.
    func contradicts(_ head: ResponseHead) -> Bool {
        switch self {
        case .tag(let tag): head[.etag].map { $0.trimmingSpace != tag } ?? false
        case .lastModified(let date): head[.lastModified].map { $0 != date } ?? false
        }
    }
}
