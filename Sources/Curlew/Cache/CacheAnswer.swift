// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The response that a cache makes from a stored one: the whole, a range of it, or 304.
struct CacheAnswer: Sendable, Hashable {
    var head: ResponseHead
    /// The bytes of the stored body that belong to the response; nil for a response without a body.
    var range: Range<Int64>?

    /// Creates the response to a request; nil if the cache cannot respond to the request's range or preconditions.
    ///
    /// - Parameter age: The age of the stored response in seconds, for `Age` (RFC 9111 §4).
    init?(_ entry: HTTPCache.Entry, for request: CacheRequest, age: Double) {
        var fields = entry.fields
        fields[.age] = "\(Int64(min(max(age, 0), Double(Int64(1) << 31))))"
        head = entry.head.with(fields: fields)
        range = request.method == .head ? nil : 0..<entry.size
        if request.fields.contains(.ifMatch) || request.fields.contains(.ifUnmodifiedSince) { return nil }
        if entry.status == .ok, Self.isNotModified(entry, request) {
            fields.remove(.contentLength)
            head = ResponseHead(status: .notModified, version: entry.version, fields: fields, url: entry.url)
            range = nil
            return
        }
        guard let wanted = request.fields[.range], request.method == .get, Self.rangeApplies(entry, request) else {
            return
        }
        guard entry.status == .ok, !entry.isDecoded, let bytes = Self.range(wanted, of: entry.size) else { return nil }
        fields[.contentRange] = "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(entry.size)"
        fields[.contentLength] = "\(bytes.count)"
        head = ResponseHead(status: .partialContent, version: entry.version, fields: fields, url: entry.url)
        range = bytes
    }

    /// Whether the request's own preconditions are about the stored response (RFC 9111 §4.3.2).
    private static func isNotModified(_ entry: HTTPCache.Entry, _ request: CacheRequest) -> Bool {
        if let tags = request.fields[.ifNoneMatch] {
            if tags.trimmingSpace == "*" { return true }
            guard let stored = entry.fields[.etag] else { return false }
            return Self.tags(in: tags).contains(CacheRules.opaque(stored))
        }
        guard let text = request.fields[.ifModifiedSince], let since = HTTPDate(anyCase: text) else { return false }
        let changed = entry.fields[.lastModified].flatMap { HTTPDate(anyCase: $0) }.map { Double($0.seconds) }
        return changed ?? CacheRules.date(of: entry) <= Double(since.seconds)
    }

    /// Returns the opaque tags of a list (RFC 9110 §8.8.3), in which a tag may contain commas.
    private static func tags(in list: String) -> [[UInt8]] {
        var (tags, tag, isQuoted) = ([[UInt8]](), [UInt8](), false)
        for byte in list.utf8 {
            let isQuote = byte == UInt8(ascii: "\"")
            if isQuote || isQuoted { tag.append(byte) }
            if isQuote { isQuoted.toggle() }
            if isQuote, !isQuoted {
                tags.append(tag)
                tag = []
            }
        }
        return tags
    }

    /// Whether `If-Range` allows a part (RFC 9110 §13.1.5).
    private static func rangeApplies(_ entry: HTTPCache.Entry, _ request: CacheRequest) -> Bool {
        guard let condition = request.fields[.ifRange] else { return true }
        return ResumeToken.Validator(entry.head)?.field == condition.trimmingSpace
    }

    /// Returns the range that a `Range` field names; nil for several ranges, other units, and an invalid or
    /// unsatisfiable range (RFC 9110 §14.1.2).
    private static func range(_ text: String, of size: Int64) -> Range<Int64>? {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, String(parts[0]).trimmingSpace.lowercased() == "bytes" else { return nil }
        let ends = String(parts[1]).trimmingSpace.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ ByteSet.digits.containsAll(of: String($0)) }) else { return nil }
        switch (Int64(ends[0]), Int64(ends[1])) {
        case (let first?, let last) where ends[1].isEmpty || last != nil:
            let end = min(last.map { $0 < .max ? $0 + 1 : $0 } ?? size, size)
            return first < end ? first..<end : nil
        case (nil, let count?) where ends[0].isEmpty && count > 0 && size > 0: return max(0, size - count)..<size
        default: return nil
        }
    }
}
