// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("RS-04…RS-11: response validation")
struct ResponseValidatorTests {
    struct Row: Sendable {
        var status: Status = .ok
        var type: String? = "application/json"
        var body = "{}"
        var statuses = StatusSet.success
        var accepting: [MediaType] = ["application/json", "application/*+json"]
        var kind: NetworkError.Kind?
        var message = ""
    }

    static let rows: [Row] = [
        Row(), Row(status: 299), Row(type: "application/problem+json; charset=utf-8"),
        // RS-04: the status.
        Row(status: .notFound, kind: .unacceptableStatus, message: "Request failed: Not Found (404)."),
        Row(status: 799, kind: .unacceptableStatus, message: "Request failed: status 799."),
        Row(status: .notFound, statuses: .any), Row(status: .notFound, statuses: [.notFound]),
        Row(statuses: [], kind: .unacceptableStatus, message: "Request failed: OK (200)."),
        // RS-05…RS-07: the type.
        Row(
            type: "text/html; charset=utf-8", kind: .unacceptableContentType,
            message:
                "The response is “text/html; charset=utf-8”; accepted: application/json, application/*+json."),
        Row(
            type: nil, accepting: ["image/*;q=0.5"], kind: .unacceptableContentType,
            message: "The response has no Content-Type; accepted: image/*."),
        Row(
            type: "json\u{1B}", kind: .unacceptableContentType,
            message: "The response is “json\\u{1B}”; accepted: application/json, application/*+json."),
        Row(type: "text/html", accepting: []), Row(type: "text/html", accepting: ["a/b", "*/*;q=0.1"]),
        Row(type: nil, accepting: [.any]), Row(type: "nonsense", accepting: [.any]),
        // RS-06: an empty body is acceptable with any type.
        Row(type: "text/html", body: ""), Row(type: nil, body: ""), Row(status: .noContent, type: nil, body: ""),
        Row(status: .notModified, type: "text/html", body: "", statuses: [.notModified]),
    ]

    private static func refusal(_ row: Row) -> NetworkError? {
        var fields = HeaderFields()
        fields[.contentType] = row.type
        return ResponseValidator(statuses: row.statuses, accepting: row.accepting).refusal(
            of: ResponseHead(status: row.status, fields: fields), body: Data(row.body.utf8), request: "https://h/p")
    }

    @Test(arguments: rows)
    func validatorGivesTheExpectedVerdicts(row: Row) {
        let error = Self.refusal(row)
        #expect(error?.kind == row.kind)
        #expect(error?.message ?? "" == row.message)
    }

    @Test("RS-09: the status is outermost, the type its cause")
    func contentTypeErrorIsTheCauseOfTheStatusError() throws {
        let error = try #require(Self.refusal(Row(status: .badGateway, type: "text/html", body: "<p>")))
        #expect(error.kind == .unacceptableStatus && error.phase == .validating)
        #expect((error.cause as? NetworkError)?.kind == .unacceptableContentType)
        #expect(Self.refusal(Row(status: .badGateway))?.cause == nil)
    }

    @Test("RS-10: the error has request, head and the body's start")
    func errorHasRequestHeadAndStartOfBody() throws {
        let long = String(repeating: "x", count: 70_000)
        for row in [Row(status: .notFound, body: long), Row(type: "text/html", body: long)] {
            let error = try #require(Self.refusal(row))
            #expect(error.request?.url == "https://h/p" && error.response?.status == row.status)
            #expect(error.body == Array(long.utf8.prefix(65_536)))
        }
    }

    static let hints: [(Status, String, String?)] = [
        (Status.notFound, "", "Check the path and the base URL."),
        (
            .notFound, "x",
            "Check the path and the base URL. The first 64 KiB of the response's body are in error.body."
        ),
        (.imATeapot, "", nil), (.imATeapot, "x", "The first 64 KiB of the response's body are in error.body."),
        (.found, "", "The redirect was not followed; see options.redirects."),
    ]

    @Test(arguments: hints)
    func hintsFollowTheStatus(status: Status, body: String, hint: String?) {
        #expect(Self.refusal(Row(status: status, body: body))?.hint == hint)
    }
}

extension Status {
    fileprivate static let imATeapot = Status(418)
}
