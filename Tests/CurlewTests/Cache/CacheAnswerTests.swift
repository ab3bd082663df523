// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The answers that a cache makes from a stored response of ten bytes (RFC 9111 §4.3.2, RFC 9110 §13 and §14), as a
/// table.
struct CacheAnswerTests {
    struct Row: Sendable, CustomTestStringConvertible {
        enum Result: Sendable, Hashable {
            /// The request is left to the server.
            case forwarded
            case whole
            /// The whole response without its body.
            case head
            case part(Range<Int64>)
            case notModified
        }

        let name: String
        let status: Status
        let stored: HeaderFields
        let size: Int64
        let method: Curlew.Method
        let request: HeaderFields
        let result: Result

        init(
            _ name: String, status: Status = 200, _ stored: HeaderFields, size: Int64 = 10,
            method: Curlew.Method = .get, _ request: HeaderFields, _ result: Result
        ) {
            (self.name, self.status, self.stored, self.size) = (name, status, stored, size)
            (self.method, self.request, self.result) = (method, request, result)
        }

        var testDescription: String { name }
    }

    @Test(arguments: rows) func storedResponseAnswersRequest(_ row: Row) {
        let stored = row.stored.merging([.contentLength: "\(row.size)"])
        let entry = CacheUpdatingTests.entry(stored, row.status, size: row.size)
        let request = CacheRequest(row.method, CacheCase.url, fields: row.request)
        let answer = CacheAnswer(entry, for: request, age: 7)
        #expect(Self.result(of: answer, row) == row.result)
        guard let answer else { return }
        #expect(answer.head[.age] == "7" && answer.head[.etag] == row.stored[.etag])
        #expect(answer.head.url == CacheCase.url)
    }

    private static func result(of answer: CacheAnswer?, _ row: Row) -> Row.Result? {
        guard let answer else { return .forwarded }
        let fields = answer.head.fields
        switch (answer.head.status, answer.range) {
        case (.notModified, nil) where fields[.contentLength] == nil: return .notModified
        case (.partialContent, let range?):
            let value = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(row.size)"
            let isRight = fields[.contentRange] == value && fields[.contentLength] == "\(range.count)"
            return isRight ? .part(range) : nil
        case (row.status, nil): return .head
        case (row.status, let range?) where range == 0..<row.size:
            return fields[.contentLength] == "\(row.size)" ? .whole : nil
        default: return nil
        }
    }

    /// RFC 9111 §5.1 and §1.2.2.
    @Test(arguments: ages) func ageIsAWholeNumber(_ age: Double, _ value: String) {
        let entry = CacheUpdatingTests.entry([.age: "3", .date: CacheCase.date(0)])
        let answer = CacheAnswer(entry, for: CacheRequest(.get, CacheCase.url), age: age)
        #expect(answer?.head.fields.values(for: .age) == [value])
    }

    static let ages: [(Double, String)] = [
        (0, "0"), (0.9, "0"), (59.99, "59"), (-5, "0"), (86_400, "86400"), (2_147_483_648, "2147483648"),
        (1e18, "2147483648"), (Double.infinity, "2147483648"),
    ]

    static let rows: [Row] = [
        Row("RFC 9111 §4 the whole response", [.etag: "\"1\""], [:], .whole),
        Row("RFC 9111 §4 the whole of another status", status: 404, [.etag: "\"1\""], [:], .whole),
        Row("RFC 9111 §4 HEAD gets no body", [.etag: "\"1\""], method: .head, [:], .head),
        Row("RFC 9111 §4 an empty body", [.etag: "\"1\""], size: 0, [:], .whole),
        Row("RFC 9111 §4.3.2 If-Match is for the server", [.etag: "\"1\""], [.ifMatch: "\"1\""], .forwarded),
        Row(
            "RFC 9111 §4.3.2 If-Unmodified-Since is for the server", [.lastModified: CacheCase.date(-60)],
            [.ifUnmodifiedSince: CacheCase.date(0)], .forwarded),
        Row(
            "RFC 9111 §4.3.2 If-Match is for the server beside If-None-Match", [.etag: "\"1\""],
            [.ifNoneMatch: "\"1\"", .ifMatch: "\"1\""], .forwarded),
        Row("RFC 9110 §13.1.2 an equal entity tag", [.etag: "\"1\""], [.ifNoneMatch: "\"1\""], .notModified),
        Row("RFC 9110 §13.1.2 another entity tag", [.etag: "\"1\""], [.ifNoneMatch: "\"2\""], .whole),
        Row(
            "RFC 9110 §13.1.2 one of several entity tags", [.etag: "\"1\""], [.ifNoneMatch: "\"2\", \"1\", \"3\""],
            .notModified),
        Row(
            "RFC 9110 §13.1.2 entity tags without space", [.etag: "\"1\""], [.ifNoneMatch: "\"2\",\"1\""], .notModified
        ),
        Row(
            "RFC 9110 §13.1.2 entity tags in two fields", [.etag: "\"1\""],
            [.ifNoneMatch: "\"2\"", .ifNoneMatch: "\"1\""], .notModified),
        Row("RFC 9110 §13.1.2 none of several entity tags", [.etag: "\"1\""], [.ifNoneMatch: "\"2\", \"3\""], .whole),
        Row(
            "RFC 9110 §13.1.2 a weak entity tag of the request", [.etag: "\"1\""], [.ifNoneMatch: "W/\"1\""],
            .notModified),
        Row(
            "RFC 9110 §13.1.2 a weak entity tag of the response", [.etag: "W/\"1\""], [.ifNoneMatch: "\"1\""],
            .notModified),
        Row("RFC 9110 §13.1.2 two weak entity tags", [.etag: "W/\"1\""], [.ifNoneMatch: "W/\"1\""], .notModified),
        Row("RFC 9110 §13.1.2 an asterisk", [.etag: "\"1\""], [.ifNoneMatch: "*"], .notModified),
        Row(
            "RFC 9110 §13.1.2 an asterisk for a response without an entity tag", [:], [.ifNoneMatch: " * "],
            .notModified),
        Row("RFC 9110 §13.1.2 a response without an entity tag", [:], [.ifNoneMatch: "\"1\""], .whole),
        Row("RFC 9110 §8.8.3 an entity tag with a comma", [.etag: "\"a,b\""], [.ifNoneMatch: "\"a,b\""], .notModified),
        Row("RFC 9110 §13.1.2 entity tags of another case", [.etag: "\"a\""], [.ifNoneMatch: "\"A\""], .whole),
        Row(
            "RFC 9110 §13.1.2 HEAD with an equal entity tag", [.etag: "\"1\""], method: .head, [.ifNoneMatch: "\"1\""],
            .notModified),
        Row(
            "RFC 9111 §4.3.2 another status is not compared", status: 404, [.etag: "\"1\""], [.ifNoneMatch: "\"1\""],
            .whole),
        Row(
            "RFC 9110 §13.1.3 not changed since the time of the change", [.lastModified: CacheCase.date(-60)],
            [.ifModifiedSince: CacheCase.date(-60)], .notModified),
        Row(
            "RFC 9110 §13.1.3 not changed since a later time", [.lastModified: CacheCase.date(-60)],
            [.ifModifiedSince: CacheCase.date(-59)], .notModified),
        Row(
            "RFC 9110 §13.1.3 changed since an earlier time", [.lastModified: CacheCase.date(-60)],
            [.ifModifiedSince: CacheCase.date(-61)], .whole),
        Row("RFC 9110 §13.1.3 an invalid time", [.lastModified: CacheCase.date(-60)], [.ifModifiedSince: "x"], .whole),
        Row(
            "RFC 9110 §13.1.3 a time in the form of RFC 850", [.lastModified: CacheCase.date(-60)],
            [.ifModifiedSince: "Thursday, 01-Jan-26 00:00:00 GMT"], .notModified),
        Row(
            "RFC 9110 §13.1.3 entity tags win over times", [.etag: "\"1\"", .lastModified: CacheCase.date(-60)],
            [.ifNoneMatch: "\"2\"", .ifModifiedSince: CacheCase.date(0)], .whole),
        Row(
            "RFC 9110 §13.1.3 equal entity tags win over times", [.etag: "\"1\"", .lastModified: CacheCase.date(-60)],
            [.ifNoneMatch: "\"1\"", .ifModifiedSince: CacheCase.date(-99)], .notModified),
        Row(
            "RFC 9110 §13.1.3 entity tags win for a response without one", [.lastModified: CacheCase.date(-60)],
            [.ifNoneMatch: "\"1\"", .ifModifiedSince: CacheCase.date(0)], .whole),
        Row(
            "RFC 9111 §4.3.2 Date stands for a missing Last-Modified", [.date: CacheCase.date(0)],
            [.ifModifiedSince: CacheCase.date(0)], .notModified),
        Row(
            "RFC 9111 §4.3.2 a later Date stands for a missing Last-Modified", [.date: CacheCase.date(0)],
            [.ifModifiedSince: CacheCase.date(-1)], .whole),
        Row(
            "RFC 9110 §13.1.3 a time with another status", status: 404, [.lastModified: CacheCase.date(-60)],
            [.ifModifiedSince: CacheCase.date(0)], .whole),
        Row("RFC 9110 §14.2 the first bytes", [.etag: "\"1\""], [.range: "bytes=0-3"], .part(0..<4)),
        Row("RFC 9110 §14.1.2 the first byte", [.etag: "\"1\""], [.range: "bytes=0-0"], .part(0..<1)),
        Row("RFC 9110 §14.1.2 bytes in the middle", [.etag: "\"1\""], [.range: "bytes=3-5"], .part(3..<6)),
        Row("RFC 9110 §14.1.2 all bytes", [.etag: "\"1\""], [.range: "bytes=0-9"], .part(0..<10)),
        Row("RFC 9110 §14.1.2 bytes to the end", [.etag: "\"1\""], [.range: "bytes=4-"], .part(4..<10)),
        Row("RFC 9110 §14.1.2 bytes beyond the end", [.etag: "\"1\""], [.range: "bytes=4-99"], .part(4..<10)),
        Row(
            "RFC 9110 §14.1.2 bytes to the largest position", [.etag: "\"1\""], [.range: "bytes=4-9223372036854775807"],
            .part(4..<10)),
        Row("RFC 9110 §14.1.2 the last bytes", [.etag: "\"1\""], [.range: "bytes=-3"], .part(7..<10)),
        Row("RFC 9110 §14.1.2 more last bytes than there are", [.etag: "\"1\""], [.range: "bytes=-99"], .part(0..<10)),
        Row("RFC 9110 §14.1 units match any case", [.etag: "\"1\""], [.range: "Bytes=0-3"], .part(0..<4)),
        Row("RFC 9110 §14.1.2 no last bytes", [.etag: "\"1\""], [.range: "bytes=-0"], .forwarded),
        Row("RFC 9110 §14.1.2 a first byte at the end", [.etag: "\"1\""], [.range: "bytes=10-"], .forwarded),
        Row("RFC 9110 §14.1.2 a first byte beyond the end", [.etag: "\"1\""], [.range: "bytes=99-100"], .forwarded),
        Row("RFC 9110 §14.1.1 a range backwards", [.etag: "\"1\""], [.range: "bytes=5-4"], .forwarded),
        Row("RFC 9110 §14.1.1 a range without ends", [.etag: "\"1\""], [.range: "bytes=-"], .forwarded),
        Row("RFC 9110 §14.1.1 a range of letters", [.etag: "\"1\""], [.range: "bytes=a-b"], .forwarded),
        Row("RFC 9110 §14.1.1 a range of one number", [.etag: "\"1\""], [.range: "bytes=5"], .forwarded),
        Row("RFC 9110 §14.1.1 a range with a sign", [.etag: "\"1\""], [.range: "bytes=+1-3"], .forwarded),
        Row("RFC 9110 §14.1.1 a range without =", [.etag: "\"1\""], [.range: "bytes 0-3"], .forwarded),
        Row(
            "RFC 9110 §14.1.1 a first byte above 64 bits", [.etag: "\"1\""], [.range: "bytes=99999999999999999999-"],
            .forwarded),
        Row("RFC 9110 §14.1.2 bytes of an empty body", [.etag: "\"1\""], size: 0, [.range: "bytes=0-"], .forwarded),
        Row(
            "RFC 9110 §14.1.2 last bytes of an empty body", [.etag: "\"1\""], size: 0, [.range: "bytes=-1"], .forwarded
        ),
        Row(
            "RFC 9110 §14.1.1 several ranges are for the server", [.etag: "\"1\""], [.range: "bytes=0-1, 4-5"],
            .forwarded),
        Row("RFC 9110 §14.1 another unit is for the server", [.etag: "\"1\""], [.range: "items=0-1"], .forwarded),
        Row("RFC 9110 §14.2 HEAD ignores Range", [.etag: "\"1\""], method: .head, [.range: "bytes=0-3"], .head),
        Row(
            "RFC 9110 §14.2 a range of another status is for the server", status: 404, [.etag: "\"1\""],
            [.range: "bytes=0-3"], .forwarded),
        Row(
            "RFC 9110 §13.2.2 a precondition wins over Range", [.etag: "\"1\""],
            [.ifNoneMatch: "\"1\"", .range: "bytes=0-3"], .notModified),
        Row(
            "RFC 9110 §13.2.2 a failed precondition leaves Range", [.etag: "\"1\""],
            [.ifNoneMatch: "\"2\"", .range: "bytes=0-3"], .part(0..<4)),
        Row(
            "RFC 9110 §13.1.5 an equal If-Range", [.etag: "\"1\""], [.ifRange: "\"1\"", .range: "bytes=0-3"],
            .part(0..<4)),
        Row(
            "RFC 9110 §13.1.5 space around If-Range", [.etag: "\"1\""], [.ifRange: " \"1\" ", .range: "bytes=0-3"],
            .part(0..<4)),
        Row("RFC 9110 §13.1.5 another If-Range", [.etag: "\"1\""], [.ifRange: "\"2\"", .range: "bytes=0-3"], .whole),
        Row("RFC 9110 §13.1.5 a weak If-Range", [.etag: "\"1\""], [.ifRange: "W/\"1\"", .range: "bytes=0-3"], .whole),
        Row(
            "RFC 9110 §13.1.5 If-Range for a weak response", [.etag: "W/\"1\""],
            [.ifRange: "W/\"1\"", .range: "bytes=0-3"], .whole),
        Row(
            "RFC 9110 §13.1.5 If-Range for a response without validators", [:],
            [.ifRange: "\"1\"", .range: "bytes=0-3"], .whole),
        Row(
            "RFC 9110 §13.1.5 If-Range with an equal date",
            [.lastModified: CacheCase.date(-60), .date: CacheCase.date(0)],
            [.ifRange: CacheCase.date(-60), .range: "bytes=0-3"], .part(0..<4)),
        Row(
            "RFC 9110 §13.1.5 If-Range with a later date",
            [.lastModified: CacheCase.date(-60), .date: CacheCase.date(0)],
            [.ifRange: CacheCase.date(-59), .range: "bytes=0-3"], .whole),
        Row(
            "RFC 9110 §13.1.5 If-Range with a weak date", [.lastModified: CacheCase.date(0), .date: CacheCase.date(0)],
            [.ifRange: CacheCase.date(0), .range: "bytes=0-3"], .whole),
        Row("RFC 9110 §13.1.5 If-Range without Range", [.etag: "\"1\""], [.ifRange: "\"2\""], .whole),
    ]
}
