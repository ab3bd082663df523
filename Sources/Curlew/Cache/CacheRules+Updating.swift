// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension CacheRules {
    // MARK: Validation

    /// Whether a 304 response is about a stored response (RFC 9111 §4.3.4).
    ///
    /// A response without validators is about the response whose validators were sent.
    static func confirms(_ head: ResponseHead, _ entry: HTTPCache.Entry) -> Bool {
        if let tag = head[.etag] {
            // Servers that compress a response weaken its tag, but not that of the 304.
            if let stored = entry.fields[.etag] { return opaque(tag) == opaque(stored) }
            if !isWeak(tag) { return false }
        }
        if let date = head[.lastModified], let stored = entry.fields[.lastModified] { return date == stored }
        return true
    }

    private static func isWeak(_ tag: String) -> Bool { tag.trimmingSpace.hasPrefix("W/") }

    /// Returns the bytes of an entity tag without its mark for weakness (RFC 9110 §8.8.3.2).
    static func opaque(_ tag: String) -> [UInt8] {
        let tag = tag.trimmingSpace
        return Array(tag.utf8.dropFirst(isWeak(tag) ? 2 : 0))
    }

    /// Returns a stored response updated by the fields of a 304 response or of a response to HEAD (RFC 9111 §3.2).
    ///
    /// - Parameter request: The request for that response.
    func updated(
        _ entry: HTTPCache.Entry, by head: ResponseHead, to request: CacheRequest, requestedAt: Date, receivedAt: Date
    ) -> HTTPCache.Entry {
        var fields = entry.fields
        // The old values say nothing about the new response.
        for name in [HeaderName.age, .date] { fields.remove(name) }
        fields.merge(HeaderFields(head.fields.filter { !Self.fixedFields.contains($0.name) }))
        // The stored body can be a changed one, which is no dictionary.
        if !entry.isDictionary { fields.remove(.useAsDictionary) }
        var updated = entry
        // The directives of both responses count.
        updated.fields = storedFields(fields)
        if head[.vary] != nil { updated.requestFields = Self.requestFields(of: request, for: updated.fields) }
        updated.requestedAt = requestedAt
        updated.receivedAt = receivedAt
        return updated
    }

    /// The fields that describe the stored body (RFC 9111 §3.2), and a field that each cache adds by itself.
    private static let fixedFields: Set<HeaderName> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, "Cache-Status",
    ]

    /// Whether a response to HEAD describes the stored response to GET (RFC 9111 §4.3.5).
    static func describes(_ head: ResponseHead, _ entry: HTTPCache.Entry) -> Bool {
        for name in [HeaderName.etag, .lastModified] {
            // Servers that compress a response weaken its tag.
            if let new = head[name], entry.fields[name].map({ opaque($0) }) != opaque(new) { return false }
        }
        // The stored length of a decoded body is not that of the encoded one.
        guard head[.contentEncoding] == nil, let length = head.contentLength, let stored = entry.head.contentLength
        else { return true }
        return length == stored
    }

    // MARK: Parts

    /// Returns the head of a response made from a stored start and the rest that a 206 response delivers; nil if they
    /// do not belong together (RFC 9111 §3.4).
    func combined(
        _ entry: HTTPCache.Entry, with head: ResponseHead, to request: CacheRequest, requestedAt: Date, receivedAt: Date
    ) -> HTTPCache.Entry? {
        guard head.status == .partialContent, let validator = ResumeToken.Validator(entry.head),
            Self.confirms(validator, head), head[.contentEncoding] == nil,
            let range = head[.contentRange].flatMap({ ResponseHead.ContentRange($0) }), let bytes = range.bytes,
            bytes.lowerBound == entry.size, let total = range.total, total == entry.completeSize,
            bytes.upperBound == total - 1
        else { return nil }
        return updated(entry, by: head, to: request, requestedAt: requestedAt, receivedAt: receivedAt).renewed()
    }

    /// Whether a 206 response is a part of the response with a validator.
    ///
    /// A 206 after `If-Range` has the entity tag, but it may lack `Last-Modified` (RFC 9110 §15.3.7).
    private static func confirms(_ validator: ResumeToken.Validator, _ head: ResponseHead) -> Bool {
        if case .tag = validator, head[.etag] == nil { return false }
        return !validator.contradicts(head)
    }

    /// Returns the size of a whole body if the start of it may be stored for a later completion; nil if it may not.
    static func completeSize(of head: ResponseHead) -> Int64? {
        guard head.status == .ok, head[.contentEncoding] == nil, head[.acceptRanges]?.lowercased() != "none",
            ResumeToken.Validator(head) != nil
        else { return nil }
        return head.contentLength
    }

    // MARK: Invalidation

    /// A set of stored responses that a response invalidates.
    enum Invalidation: Sendable, Hashable {
        case url(String)
        case group(String, origin: String)
    }

    /// Returns what a response invalidates (RFC 9111 §4.4, RFC 9875 §3).
    static func invalidated(by head: ResponseHead, to request: CacheRequest) -> [Invalidation] {
        guard !request.method.isSafe, (200..<400).contains(head.status.code),
            let target = try? RequestTarget(request.url)
        else { return [] }
        var invalidated: [Invalidation] = [.url(request.url)]
        for name in [HeaderName.location, .contentLocation] {
            guard let text = head[name], let other = try? RequestTarget(URLReference.resolve(text, against: target)),
                other.isSameOrigin(as: target)
            else { continue }
            invalidated.append(.url(CacheKey.url(of: other)))
        }
        let origin = CacheKey.origin(of: request.url)
        for group in head["Cache-Group-Invalidation"].map({ HTTPCache.Entry.groups(in: $0) }) ?? [] {
            invalidated.append(.group(group, origin: origin))
        }
        return invalidated
    }
}
