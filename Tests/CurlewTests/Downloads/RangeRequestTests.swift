// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// Judgement of responses to a range request for the remaining bytes (RFC 9110 §13.1.5 and §14).
struct RangeRequestTests {
    private let rangeRequest = RangeRequest(offset: 100, validator: .tag("\"1\""), total: 1000)

    private func head(_ status: Status, _ fields: HeaderFields = [:]) -> ResponseHead {
        ResponseHead(status: status, fields: fields)
    }

    private func part(_ range: String, _ more: [(HeaderName, String)] = []) -> ResponseHead {
        var fields: HeaderFields = [.contentRange: range]
        for (name, value) in more { fields[name] = value }
        return head(.partialContent, fields)
    }

    @Test func rangeAndIfRangeFieldsAreSent() {
        #expect(
            rangeRequest.fields.map(\.0) == [.range, .ifRange]
                && rangeRequest.fields.map(\.1) == ["bytes=100-", "\"1\""])
        #expect(RangeRequest(offset: 0, validator: .tag("\"1\""), total: nil).fields.isEmpty)
        #expect(RangeRequest(offset: 100, validator: nil, total: nil).fields.isEmpty)
    }

    @Test func matchingPartialResponseIsTheRest() {
        #expect(rangeRequest.answer(part("bytes 100-999/1000"), isEncoded: false) == .rest(last: 999, total: 1000))
        #expect(rangeRequest.answer(part("bytes 100-999/*"), isEncoded: false) == .rest(last: 999, total: 1000))
        #expect(rangeRequest.answer(part("bytes 100-199/1000"), isEncoded: false) == .rest(last: 199, total: 1000))
        let fields: [(HeaderName, String)] = [(.etag, "\"1\""), (.contentLength, "900")]
        #expect(
            rangeRequest.answer(part("bytes 100-999/1000", fields), isEncoded: false) == .rest(last: 999, total: 1000))
        let unknown = RangeRequest(offset: 100, validator: .tag("\"1\""), total: nil)
        #expect(unknown.answer(part("bytes 100-999/1000"), isEncoded: false) == .rest(last: 999, total: 1000))
        #expect(unknown.answer(part("bytes 100-999/*"), isEncoded: false) == .rest(last: 999, total: nil))
    }

    @Test(arguments: [
        ("bytes 99-999/1000", nil), ("bytes 100-999/1001", nil), ("bytes 100-1000/*", nil), ("bytes */1000", nil),
        ("none", nil), ("bytes 100-999/1000", "\"2\""), ("bytes 100-999/1000", "W/\"1\""),
    ])
    func mismatchedPartialResponseIsUnfit(range: String, tag: String?) {
        let answer = rangeRequest.answer(part(range, tag.map { [(.etag, $0)] } ?? []), isEncoded: false)
        guard case .mismatch(let reason) = answer else { return #expect(Bool(false), "\(answer)") }
        #expect(!reason.isEmpty)
    }

    @Test func contradictoryLengthOrContentCodingIsUnfit() {
        let short = part("bytes 100-999/1000", [(.contentLength, "899")])
        for answer in [
            rangeRequest.answer(short, isEncoded: false),
            rangeRequest.answer(part("bytes 100-999/1000"), isEncoded: true),
            rangeRequest.answer(head(.partialContent), isEncoded: false),
        ] {
            guard case .mismatch = answer else { return #expect(Bool(false), "\(answer)") }
        }
    }

    @Test func rangeNotSatisfiableAtTheEndIsComplete() {
        let whole = RangeRequest(offset: 1000, validator: .tag("\"1\""), total: 1000)
        #expect(
            whole.answer(head(.rangeNotSatisfiable, [.contentRange: "bytes */1000"]), isEncoded: false) == .complete)
        for fields: HeaderFields in [
            [:], [.contentRange: "bytes */999"], [.contentRange: "bytes */1000", .etag: "\"2\""],
        ] {
            guard case .mismatch = whole.answer(head(.rangeNotSatisfiable, fields), isEncoded: false) else {
                return #expect(Bool(false), "\(fields)")
            }
        }
    }

    @Test func wholeResponsesAndRefusalsAreRecognised() {
        #expect(rangeRequest.answer(head(.ok), isEncoded: true) == .whole)
        #expect(rangeRequest.answer(head(.notFound), isEncoded: false) == .error)
        let whole = RangeRequest(offset: 0, validator: nil, total: nil)
        #expect(whole.answer(head(.ok), isEncoded: false) == .whole)
        #expect(whole.answer(part("bytes 0-9/10"), isEncoded: false) == .error)
        #expect(whole.answer(head(.rangeNotSatisfiable), isEncoded: false) == .error)
    }

    // MARK: Validators

    @Test func strongValidatorsAreChosen() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let later = "Sun, 06 Nov 1994 08:49:38 GMT"
        #expect(ResumeToken.Validator(head(.ok, [.etag: "\"a\""])) == .tag("\"a\""))
        #expect(ResumeToken.Validator(head(.ok, [.etag: "\"a\"", .lastModified: date, .date: later])) == .tag("\"a\""))
        #expect(ResumeToken.Validator(head(.ok, [.etag: "W/\"a\"", .lastModified: date, .date: later])) == nil)
        #expect(
            ResumeToken.Validator(head(.ok, [.etag: "a"])) == nil
                && ResumeToken.Validator(head(.ok, [.etag: "\""])) == nil)
        #expect(ResumeToken.Validator(head(.ok, [.lastModified: date, .date: later])) == .lastModified(date))
        #expect(ResumeToken.Validator(head(.ok, [.lastModified: date, .date: date])) == nil)
        #expect(
            ResumeToken.Validator(head(.ok, [.lastModified: date])) == nil && ResumeToken.Validator(head(.ok)) == nil)
        #expect(ResumeToken.Validator(head(.ok, [.lastModified: "x", .date: later])) == nil)
    }

    @Test func validatorContradictsDifferentValidators() {
        let (tag, time) = (ResumeToken.Validator.tag("\"a\""), ResumeToken.Validator.lastModified("x"))
        #expect(tag.contradicts(head(.ok, [.etag: "\"b\""])) && !tag.contradicts(head(.ok, [.etag: "\"a\""])))
        #expect(!tag.contradicts(head(.ok)) && !time.contradicts(head(.ok)))
        #expect(time.contradicts(head(.ok, [.lastModified: "y"])) && !time.contradicts(head(.ok, [.lastModified: "x"])))
        #expect(time.field == "x")
    }
}
