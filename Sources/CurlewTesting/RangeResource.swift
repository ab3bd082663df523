// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A resource to download that supports range requests (RFC 9110 §14) and can misbehave on demand.
///
/// ```swift
/// let resource = RangeResource(PatternBody(seed: 1, length: 1 << 20))
/// let server = try MockServer { request in resource.response(to: request) }
/// ```
///
/// The response to a range request is a 206. If `If-Range` does not match the resource, the response is the whole
/// resource (RFC 9110 §13.1.5). If the range lies beyond the end, the response is a 416. Only a single range is
/// supported, in the forms `first-last`, `first-` and `-count`.
public struct RangeResource: Sendable {
    /// An error in the responses to range requests.
    public enum Flaw: Sendable, Hashable, CaseIterable {
        /// The server ignores ranges: the response is always the whole resource.
        case ignoresRanges
        /// The server ignores `If-Range`: the response is a part even if the resource has changed.
        case ignoresConditions
        /// `Content-Range` names other bytes than the requested ones.
        case wrongStart
        /// `Content-Range` names a wrong length of the whole resource.
        case wrongTotal
        /// `Content-Range` is missing.
        case noContentRange
        /// `Content-Range` cannot be parsed.
        case garbledContentRange
        /// The response to every range request is a 416.
        case refusesRanges
        /// A part is half as long as the requested range.
        case sendsHalf
    }

    /// The bytes.
    public var body: PatternBody
    /// The `ETag` field, with its quotes; nil omits the field.
    public var tag: String?
    /// The `Last-Modified` field, sent together with a `Date` of the year 2026; nil omits both.
    public var lastModified: String?
    /// The errors in the responses.
    public var flaws: Set<Flaw>

    /// Creates a resource.
    ///
    /// - Parameters:
    ///   - body: The bytes.
    ///   - tag: The `ETag` field, with its quotes; `"1"` by default.
    ///   - lastModified: The `Last-Modified` field; omitted by default.
    ///   - flaws: The errors in the responses; empty by default.
    public init(_ body: PatternBody, tag: String? = "\"1\"", lastModified: String? = nil, flaws: Set<Flaw> = []) {
        self.body = body
        self.tag = tag
        self.lastModified = lastModified
        self.flaws = flaws
    }

    /// Returns the response to a request.
    public func response(to request: RecordedRequest) -> MockResponse {
        guard let range = request.field("Range"), !flaws.contains(.ignoresRanges), isMeant(request) else {
            return described(.pattern(body)).field("Accept-Ranges", "bytes")
        }
        guard !flaws.contains(.refusesRanges), var part = part(range) else {
            return described(.status(416)).field("Content-Range", "bytes */\(body.length)")
        }
        if flaws.contains(.sendsHalf), part.count > 1 { part = part.lowerBound..<(part.lowerBound + part.count / 2) }
        let answer = described(.pattern(body[part], status: 206))
        if flaws.contains(.noContentRange) { return answer }
        if flaws.contains(.garbledContentRange) { return answer.field("Content-Range", "bytes 7-3/x") }
        let start = part.lowerBound - (flaws.contains(.wrongStart) ? 1 : 0)
        let total = body.length + (flaws.contains(.wrongTotal) ? 1 : 0)
        return answer.field("Content-Range", "bytes \(start)-\(start + part.count - 1)/\(total)")
    }

    private func described(_ answer: MockResponse) -> MockResponse {
        var answer = answer
        if let tag { answer = answer.field("ETag", tag) }
        if let lastModified {
            answer = answer.field("Last-Modified", lastModified).field("Date", "Thu, 01 Jan 2026 00:00:00 GMT")
        }
        return answer
    }

    private func isMeant(_ request: RecordedRequest) -> Bool {
        guard let condition = request.field("If-Range"), !flaws.contains(.ignoresConditions) else { return true }
        return condition == tag || condition == lastModified
    }

    private func part(_ field: String) -> Range<Int>? {
        guard field.hasPrefix("bytes=") else { return nil }
        let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            guard let count = Int(ends[1]), count > 0 else { return nil }
            return max(body.length - count, 0)..<body.length
        }
        guard let first = Int(ends[0]), first < body.length else { return nil }
        let last = Int(ends[1]) ?? body.length - 1
        return last < first ? nil : first..<(min(last, body.length - 1) + 1)
    }
}
