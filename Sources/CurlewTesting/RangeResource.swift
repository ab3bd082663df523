// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Something to download: bytes that are also given in parts (RFC 9110 §14), by a server that can be told to misbehave.
///
/// ```swift
/// let resource = RangeResource(PatternBody(seed: 1, length: 1 << 20))
/// let server = try MockServer { request in resource.response(to: request) }
/// ```
///
/// The answer to a range is a 206 response; one whose `If-Range` names another state is the whole (RFC 9110 §13.1.5), one
/// beyond the end is a 416. One range is understood, in the forms `first-last`, `first-` and `-count`.
public struct RangeResource: Sendable {
    /// What is wrong with the answers to ranges.
    public enum Flaw: Sendable, Hashable, CaseIterable {
        /// Ranges are ignored: the answer is always the whole.
        case ignoresRanges
        /// `If-Range` is ignored: the answer is a part, of whatever state.
        case ignoresConditions
        /// `Content-Range` names other bytes than those that were asked for.
        case wrongStart
        /// `Content-Range` names another length of the whole.
        case wrongTotal
        /// `Content-Range` is missing.
        case noContentRange
        /// `Content-Range` cannot be read.
        case garbledContentRange
        /// Every range is answered by 416.
        case refusesRanges
        /// A part is half as long as what was asked for.
        case sendsHalf
    }

    /// The bytes.
    public var body: PatternBody
    /// The `ETag` field, with its quotes; none when nil.
    public var tag: String?
    /// The `Last-Modified` field, and with it a `Date` of the year 2026; none when nil.
    public var lastModified: String?
    /// What is wrong with it.
    public var flaws: Set<Flaw>

    /// Bytes to download.
    ///
    /// - Parameters:
    ///   - body: The bytes.
    ///   - tag: The `ETag` field, with its quotes; `"1"` unless given.
    ///   - lastModified: The `Last-Modified` field; none unless given.
    ///   - flaws: What is wrong with it; nothing unless given.
    public init(_ body: PatternBody, tag: String? = "\"1\"", lastModified: String? = nil, flaws: Set<Flaw> = []) {
        self.body = body
        self.tag = tag
        self.lastModified = lastModified
        self.flaws = flaws
    }

    /// The answer to a request.
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
