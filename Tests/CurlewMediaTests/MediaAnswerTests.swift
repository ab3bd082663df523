// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@testable import CurlewMedia

/// The interpretation of responses.
@Suite struct MediaAnswerTests {
    private static let facts = MediaFacts(length: 1000, contentType: nil, validator: .tag("\"a\""))
    private static let open = MediaFacts(length: nil, contentType: nil, validator: .tag("\"a\""))

    private func answer(
        _ status: Status, _ fields: HeaderFields, from: Int64 = 100, to: Int64? = 200, _ facts: MediaFacts? = facts
    ) -> MediaAnswer {
        let question = MediaAnswer.Question(from: from, to: to, facts: facts, canRange: facts != nil)
        return MediaAnswer(ResponseHead(status: status, fields: fields), to: question)
    }

    @Test func questionHasTheRangeAndTheValidator() {
        func fields(_ from: Int64, _ to: Int64?, _ facts: MediaFacts?, _ canRange: Bool = true) -> [String] {
            MediaAnswer.Question(from: from, to: to, facts: facts, canRange: canRange).fields
                .map { "\($0.0): \($0.1)" }
        }
        #expect(fields(100, 200, Self.facts) == ["Range: bytes=100-199", "If-Range: \"a\""])
        #expect(fields(100, nil, Self.facts) == ["Range: bytes=100-", "If-Range: \"a\""])
        #expect(fields(0, 200, Self.facts) == ["Range: bytes=0-199", "If-Range: \"a\""])
        #expect(fields(0, nil, Self.facts) == [])
        #expect(fields(100, 200, Self.facts, false) == [])
        #expect(fields(100, 200, nil) == [])
        #expect(fields(100, 200, MediaFacts(length: 9, contentType: nil, validator: nil)) == [])
    }

    @Test(
        arguments: [
            ("bytes 100-199/1000", .part(to: 200, total: 1000)), ("bytes 100-199/*", .part(to: 200, total: nil)),
            ("bytes 100-149/1000", .part(to: 150, total: 1000)),
            ("bytes 100-199/1001", .changed("it had 1000 bytes, and has 1001 now")),
            ("bytes 99-199/1000", .unusable("another part than the requested one")),
            ("bytes 100-1000/*", .unusable("a part beyond the end of the file")),
            ("bytes 9-1/1000", .unusable("a part without a valid Content-Range")),
            ("items 100-199/1000", .unusable("a part without a valid Content-Range")),
        ] as [(String, MediaAnswer)])
    func partialContent(_ range: String, _ expected: MediaAnswer) {
        #expect(answer(.partialContent, [.contentRange: range]) == expected)
    }

    @Test func partialContentWithOtherFields() {
        let range: HeaderFields = [.contentRange: "bytes 100-199/1000"]
        #expect(answer(.partialContent, [:]) == .unusable("a part without a valid Content-Range"))
        #expect(answer(.partialContent, range.merging([.etag: "\"a\""])) == .part(to: 200, total: 1000))
        #expect(answer(.partialContent, range.merging([.etag: "\"b\""])) == .changed("its validator differs"))
        #expect(answer(.partialContent, range.merging([.contentEncoding: "identity"])) == .part(to: 200, total: 1000))
        #expect(
            answer(.partialContent, range.merging([.contentEncoding: "gzip"]))
                == .unusable("a part with a content coding"))
        #expect(
            answer(.partialContent, range.merging([.contentLength: "99"]))
                == .unusable("a part whose Content-Length disagrees with Content-Range"))
        #expect(answer(.partialContent, range, nil) == .unusable("a part, although the whole was requested"))
    }

    @Test func rangeNotSatisfiable() {
        let (same, other): (HeaderFields, HeaderFields) =
            ([.contentRange: "bytes */1000"], [.contentRange: "bytes */50"])
        #expect(answer(.rangeNotSatisfiable, other) == .changed("it is shorter"))
        #expect(answer(.rangeNotSatisfiable, [:]) == .changed("it is shorter"))
        #expect(answer(.rangeNotSatisfiable, same) == .unusable("a 416 for bytes inside of the file"))
        #expect(answer(.rangeNotSatisfiable, same.merging([.etag: "\"b\""])) == .changed("its validator differs"))
        #expect(answer(.rangeNotSatisfiable, other, Self.open) == .length(50))
        #expect(answer(.rangeNotSatisfiable, same, Self.open) == .unusable("a 416 without the length of the file"))
        #expect(answer(.rangeNotSatisfiable, same, nil) == .refused)
    }

    @Test func otherStatuses() {
        #expect(answer(.preconditionFailed, [:]) == .changed("a precondition failed"))
        #expect(answer(.preconditionFailed, [:], nil) == .refused)
        #expect(answer(.notFound, [:]) == .refused)
        #expect(answer(.notModified, [:]) == .refused)
        #expect(answer(.ok, [.contentEncoding: "br"]) == .encoded)
        let facts = MediaFacts(length: 7, contentType: "a/b", validator: .tag("\"a\""))
        let fields: HeaderFields = [.contentLength: "7", .contentType: "a/b", .etag: "\"a\""]
        #expect(answer(.ok, fields) == .whole(facts, canRange: true))
        #expect(answer(.ok, fields.merging([.acceptRanges: "none"])) == .whole(facts, canRange: false))
        let weak = MediaFacts(length: nil, contentType: nil, validator: nil)
        #expect(answer(.ok, [.etag: "W/\"a\""]) == .whole(weak, canRange: false))
    }

    @Test func onlyEqualStrongValidatorsMatch() {
        let other = MediaFacts(length: 1001, contentType: nil, validator: .tag("\"a\""))
        let plain = MediaFacts(length: 1000, contentType: nil, validator: nil)
        #expect(Self.facts.matches(Self.open) && Self.open.matches(Self.facts) && Self.facts.matches(Self.facts))
        #expect(!Self.facts.matches(other) && !plain.matches(plain) && !Self.facts.matches(plain))
    }
}
