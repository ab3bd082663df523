// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension CacheRules {
    // MARK: Validation

    /// Whether a 304 response is about a stored response (RFC 9111 §4.3.4).
    ///
    /// A response without validators is about the response whose validators were sent.
    static func confirms(_ head: ResponseHead, _ entry: HTTPCache.Entry) -> Bool {
        if let tag = head[.etag], let stored = entry.fields[.etag] { return opaque(tag) == opaque(stored) }
        if let date = head[.lastModified], let stored = entry.fields[.lastModified] { return date == stored }
        return true
    }

    /// Returns an entity tag without its mark for weakness (RFC 9110 §8.8.3.2).
    static func opaque(_ tag: String) -> Substring {
        let tag = tag.trimmingSpace
        return tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
    }

    /// Returns a stored response updated by the fields of a 304 response or of a response to HEAD (RFC 9111 §3.2).
    func updated(
        _ entry: HTTPCache.Entry, by head: ResponseHead, requestedAt: Date, receivedAt: Date
    ) -> HTTPCache.Entry {
        var updated = entry
        let new = storedFields(head.fields).filter { !Self.fixedFields.contains($0.name) }
        // The old values say nothing about the new response.
        for name in [HeaderName.age, .date] { updated.fields.remove(name) }
        updated.fields.merge(HeaderFields(new))
        updated.requestedAt = requestedAt
        updated.receivedAt = receivedAt
        return updated
    }

    /// The fields that describe the stored body (RFC 9111 §3.2).
    private static let fixedFields: Set<HeaderName> = [
        .contentEncoding, .contentLength, .contentRange, .contentType, .vary, "Cache-Status",
    ]

    /// Whether a response to HEAD describes the stored response to GET (RFC 9111 §4.3.5).
    static func describes(_ head: ResponseHead, _ entry: HTTPCache.Entry) -> Bool {
        for name in [HeaderName.etag, .lastModified] {
            if let new = head[name], let stored = entry.fields[name], new != stored { return false }
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
        _ entry: HTTPCache.Entry, with head: ResponseHead, requestedAt: Date, receivedAt: Date
    ) -> HTTPCache.Entry? {
        guard head.status == .partialContent, let validator = ResumeToken.Validator(entry.head),
            !validator.contradicts(head), head[.contentEncoding] == nil,
            let range = head[.contentRange].flatMap({ ResponseHead.ContentRange($0) }), let bytes = range.bytes,
            bytes.lowerBound == entry.size, let total = range.total, total == entry.completeSize,
            bytes.upperBound == total - 1
        else { return nil }
        let updated = updated(entry, by: head, requestedAt: requestedAt, receivedAt: receivedAt)
        return updated.renewed()
    }

    /// Returns the size of a whole body if the start of it may be stored for a later completion; nil if it may not.
    static func completeSize(of head: ResponseHead) -> Int64? {
        guard head.status == .ok, head[.contentEncoding] == nil, head[.acceptRanges]?.lowercased() != "none",
            ResumeToken.Validator(head) != nil
        else { return nil }
        return head.contentLength
    }

    // MARK: Invalidation

    /// Returns what a response invalidates (RFC 9111 §4.4, RFC 9875 §3).
    static func invalidated(by head: ResponseHead, to request: CacheRequest) -> [HTTPCache.Selection] {
        guard !request.method.isSafe, (200..<400).contains(head.status.code) else { return [] }
        let origin = CacheKey.origin(of: request.url)
        var selections: [HTTPCache.Selection] = [.key(request.url)]
        for name in [HeaderName.location, .contentLocation] {
            guard let text = head[name], let base = try? RequestTarget(request.url),
                let target = try? RequestTarget(URLReference.resolve(text, against: base)), target.isSameOrigin(as: base)
            else { continue }
            selections.append(.key(target.text))
        }
        for group in head["Cache-Group-Invalidation"].map({ HTTPCache.Entry.groups(in: $0) }) ?? [] {
            selections.append(.group(group, origin: origin))
        }
        return selections
    }
}
