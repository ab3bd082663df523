// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The value of `Use-As-Dictionary`: the requests for which a stored response is a compression dictionary
/// (RFC 9842 §2.1).
struct DictionaryUse: Hashable, Sendable {
    /// The pattern of the URLs as it was received.
    let match: String
    /// The name that the server has given to the dictionary; empty if unset.
    let id: String

    /// Reads the field of a response; nil without a valid one, and for an unknown type of dictionary.
    ///
    /// `match-dest` has no effect, because a program's requests have no destination (RFC 9842 §2.1.2).
    init?(of fields: HeaderFields) {
        guard let text = fields[.useAsDictionary], let members = StructuredField.dictionary(text),
            case .string(let match)? = members["match"]?.bare
        else { return nil }
        switch members["type"]?.bare {
        case nil where members["type"] == nil: break
        case .token("raw")?: break
        default: return nil
        }
        switch members["id"]?.bare {
        case nil where members["id"] == nil: id = ""
        // RFC 9842 §2.1.3.
        case .string(let id)? where id.utf8.count <= 1_024: self.id = id
        default: return nil
        }
        self.match = match
    }
}

extension HeaderName {
    // The fields of RFC 9842 §2.
    static let useAsDictionary = HeaderName("Use-As-Dictionary")
    static let availableDictionary = HeaderName("Available-Dictionary")
    static let dictionaryID = HeaderName("Dictionary-ID")
}

extension CacheRules {
    /// The largest dictionary that the cache loads into memory.
    static let largestDictionary: Int64 = 16 << 20

    /// Returns the stored response that is the best dictionary for a request (RFC 9842 §2.2); nil without one.
    ///
    /// - Parameter entries: The entries of the request's origin that have the field `Use-As-Dictionary`.
    func dictionary(
        for request: CacheRequest, among entries: [HTTPCache.Entry], at now: Date
    ) -> (entry: HTTPCache.Entry, use: DictionaryUse)? {
        guard request.isSecure, let target = try? RequestTarget(request.url) else { return nil }
        let candidates = entries.compactMap { entry in
            mayBeDictionary(entry, for: request, at: now) ? DictionaryUse(of: entry.fields).map { (entry, $0) } : nil
        }
        // The longest pattern is the best, and of equally long ones the most recent response (RFC 9842 §2.2.3).
        let ordered = candidates.sorted { first, second in
            (first.1.match.utf8.count, first.0.receivedAt) > (second.1.match.utf8.count, second.0.receivedAt)
        }
        return ordered.prefix(Self.maximumDictionaries).first { entry, use in
            guard let base = try? RequestTarget(entry.url), base.isSameOrigin(as: target) else { return false }
            return URLPattern(use.match, base: base)?.matches(target) ?? false
        }
    }

    /// The maximum number of patterns that are compared with a URL.
    private static let maximumDictionaries = 256

    /// Whether a stored response may be a dictionary: it is whole, decoded, and could answer a request of the same user
    /// without a validation (RFC 9842 §2.2.1).
    private func mayBeDictionary(_ entry: HTTPCache.Entry, for request: CacheRequest, at now: Date) -> Bool {
        guard entry.status == .ok, entry.isComplete, 1...Self.largestDictionary ~= entry.size,
            !entry.fields.contains(.contentEncoding), admits(request.credentials, entry),
            sharesSecrets(of: entry, with: request)
        else { return false }
        let (directives, freshness) = (directives(of: entry.fields).values, freshness(of: entry, at: now))
        if directives.noCache { return false }
        if freshness.isFresh { return true }
        guard allowsStale(directives), let limit = directives.staleWhileRevalidate else { return false }
        return -freshness.remaining < limit.inSeconds
    }

    /// Whether a request has the values of the secret fields, such as `Cookie`, on which a stored response depends: a
    /// server could otherwise connect two users of the cache.
    private func sharesSecrets(of entry: HTTPCache.Entry, with request: CacheRequest) -> Bool {
        entry.fields.varyingNames.allSatisfy { name in
            !name.isHidden || entry.requestFields[name] == request.normalizedValue(name)
        }
    }
}
