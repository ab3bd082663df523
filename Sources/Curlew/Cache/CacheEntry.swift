// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

extension HTTPCache {
    /// A stored response without its body, and what decides which requests it can answer.
    ///
    /// A ``CacheStore`` keeps entries as they are. ``description`` and mirrors are redacted, the properties are not.
    public struct Entry: Sendable, Hashable, Codable, Identifiable {
        /// A number that no other entry of the store has.
        public private(set) var id: UInt64
        /// The text by which a store finds the entry: its URL, or the URL without its query for a response with
        /// `No-Vary-Search`.
        public var key: String
        /// The URL of the request in normal form, without a fragment.
        public var url: String
        /// The status of the response.
        public var status: Status
        /// The protocol version of the response.
        public var version: ResponseHead.HTTPVersion
        /// The stored fields of the response.
        ///
        /// `Set-Cookie` and the fields of the connection (RFC 9111 §3.1) are not stored. The fields describe the
        /// decoded body.
        public var fields: HeaderFields
        /// The fields of the request that `Vary` lists; values of sensitive fields are replaced by their SHA-256.
        public var requestFields: HeaderFields
        /// The SHA-256 of the credentials that a request must have, or "" for requests without credentials; nil if any
        /// request may get the response.
        public var credentials: String?
        /// The time at which the request was sent.
        public var requestedAt: Date
        /// The time at which the head of the response was received.
        public var receivedAt: Date
        /// The number of stored bytes of the body.
        public var size: Int64
        /// The size of the whole body if only its first ``size`` bytes are stored; nil for a whole body.
        public var completeSize: Int64?
        /// Whether the stored body was decoded, so that ranges of it differ from those of the server.
        public var isDecoded = false
        /// The tags that the `willStore` closure has set; empty by default.
        public var tags: Set<String>

        /// Creates an entry with a new id for a response without a body; public for tests of stores.
        ///
        /// - Parameters:
        ///   - key: The text by which a store finds the entry.
        ///   - url: The URL of the request in normal form.
        ///   - head: The status and the version of the response.
        ///   - fields: The stored fields of the response.
        ///   - requestFields: The fields of the request that `Vary` lists; empty by default.
        ///   - credentials: The digest of the credentials that a request must have; nil by default.
        ///   - requestedAt: The time at which the request was sent.
        ///   - receivedAt: The time at which the head was received.
        ///   - tags: The tags; empty by default.
        public init(
            key: String, url: String, head: ResponseHead, fields: HeaderFields, requestFields: HeaderFields = [:],
            credentials: String? = nil, requestedAt: Date, receivedAt: Date, tags: Set<String> = []
        ) {
            id = Self.newID()
            (self.key, self.url) = (key, url)
            (status, version) = (head.status, head.version)
            (self.fields, self.requestFields) = (fields, requestFields)
            self.credentials = credentials
            (self.requestedAt, self.receivedAt) = (requestedAt, receivedAt)
            (size, completeSize) = (0, nil)
            self.tags = tags
        }

        /// Returns a number that SQLite can store.
        private static func newID() -> UInt64 { .random(in: 1...UInt64(Int64.max)) }

        /// Returns an entry for a new body.
        func renewed() -> Entry {
            var entry = self
            entry.id = Self.newID()
            (entry.size, entry.completeSize) = (0, nil)
            return entry
        }

        /// The scheme, host and port of ``url``, such as "https://example.com" (RFC 6454 §6.2).
        public var origin: String { CacheKey.origin(of: url) }

        /// Whether the whole body is stored.
        public var isComplete: Bool { completeSize == nil }

        /// The groups of the `Cache-Groups` field (RFC 9875 §2); empty without a valid field.
        ///
        /// At most 128 groups of at most 128 characters count.
        public var groups: [String] { fields["Cache-Groups"].map { Self.groups(in: $0) } ?? [] }

        /// Returns the groups of a field (RFC 9875 §2, which demands at least 32 groups of 32 characters).
        static func groups(in field: String) -> [String] {
            (StructuredField.strings(field) ?? []).prefix(128).filter { $0.utf8.count <= 128 }
        }

        /// Whether the response has a `Use-As-Dictionary` field (RFC 9842 §2.1).
        package var isDictionary: Bool { fields.contains(.useAsDictionary) }

        /// The approximate memory of the entry without its body, in bytes.
        var overhead: Int64 {
            let fields = (Array(fields) + Array(requestFields)).reduce(0) {
                $0 + $1.name.rawValue.utf8.count + $1.value.utf8.count + 64
            }
            return Int64(fields + 2 * url.utf8.count + 256)
        }
    }
}

extension HTTPCache.Entry: CustomStringConvertible, CustomReflectable {
    /// One line with the status, the redacted URL and the size, such as "200 https://example.com/ (512 B)".
    public var description: String {
        let part = completeSize.map { " of \(ByteCount($0))" } ?? ""
        return "\(status.code) \(redactedURL(url)) (\(ByteCount(size))\(part))"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}

extension HTTPCache {
    /// A choice of entries of a store.
    public enum Selection: Sendable, Hashable {
        /// All entries.
        case all
        /// The entries of a key.
        case key(String)
        /// The entries of one origin, such as "https://example.com" (RFC 6454 §6.2).
        case origin(String)
        /// The entries of a group of an origin (RFC 9875).
        case group(String, origin: String)
        /// The entries with a tag.
        case tag(String)
        /// The entries of an origin that have a `Use-As-Dictionary` field (RFC 9842 §2.1).
        ///
        /// With ``HTTPCache/Options/usesDictionaries``, the cache asks for them before most requests to a server, so a
        /// store should have an index of them. It may return only the 256 most recently used ones.
        case dictionaries(origin: String)

        /// Returns whether the selection has an entry.
        public func contains(_ entry: Entry) -> Bool {
            switch self {
            case .all: true
            case .key(let key): entry.key == key
            case .origin(let origin): entry.origin == origin
            case .group(let group, let origin): entry.origin == origin && entry.groups.contains(group)
            case .tag(let tag): entry.tags.contains(tag)
            case .dictionaries(let origin): entry.isDictionary && entry.origin == origin
            }
        }
    }
}

/// The tag of a request whose response another store keeps, so that the session's cache takes no part in it.
package enum OwnStore: Request.Tag {
    package typealias Value = Bool
}

/// The keys of stored responses.
package enum CacheKey {
    /// Returns the origin of a URL; empty for an invalid one.
    static func origin(of url: String) -> String { (try? RequestTarget(url)).map { origin(of: $0) } ?? "" }

    /// Returns the scheme, host and port of a URL, such as "https://example.com"; the port is left out if it is the
    /// default port.
    static func origin(of target: RequestTarget) -> String {
        let host = target.isIPv6 ? "[\(target.host)]" : target.host
        let port = target.port == target.scheme.defaultPort ? "" : ":\(target.port)"
        return "\(target.scheme.rawValue)://\(host)\(port)"
    }

    /// Returns a URL without its query.
    static func withoutQuery(_ url: String) -> String {
        url.utf8.firstIndex(of: UInt8(ascii: "?")).map { String(url[..<$0]) } ?? url
    }

    /// Returns the URL of a request without user-info.
    package static func url(of target: RequestTarget) -> String {
        guard let userInfo = target.userInfo else { return target.text }
        let start = "\(target.scheme.rawValue)://"
        return start + target.text.dropFirst(start.count + userInfo.count + 1)
    }

    /// Returns the key of the responses that answer requests with several queries; no URL in normal form is equal.
    static func ofSearch(_ url: String) -> String { withoutQuery(url) + "#" }

    /// Returns the hexadecimal SHA-256 of a text.
    package static func digest(_ text: String) -> String {
        // Without SHA-256, no two texts are equal.
        guard let digest = MessageDigest(.sha256) else { return "\(UInt64.random(in: 0 ... .max))" }
        digest.update(text.utf8)
        return digest.finish().hexadecimal
    }
}
