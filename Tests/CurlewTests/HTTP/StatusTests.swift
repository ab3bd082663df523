// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Status, RFC 9110 §15")
struct StatusTests {
    static let kindRows: [(Status, Status.Kind)] = [
        (Status(99), Status.Kind.other), (100, .informational), (199, .informational), (200, .successful),
        (299, .successful), (300, .redirection), (399, .redirection), (400, .clientError), (499, .clientError),
        (500, .serverError), (599, .serverError), (600, .other), (-1, .other),
    ]

    @Test(arguments: kindRows)
    func kindsFollowTheCode(status: Status, kind: Status.Kind) {
        #expect(status.kind == kind)
        #expect(status.isSuccess == (kind == .successful))
    }

    static let descriptionRows: [(Status, Int, String)] = [
        (Status.ok, 200, "200 OK"), (.contentTooLarge, 413, "413 Content Too Large"),
        (.unprocessableContent, 422, "422 Unprocessable Content"), (.continue, 100, "100 Continue"),
        (306, 306, "306"), (418, 418, "418"), (799, 799, "799"),
    ]

    @Test(arguments: descriptionRows)
    func descriptionsContainCodeAndReason(status: Status, code: Int, text: String) {
        #expect(status.code == code)
        #expect(status.description == text)
    }

    @Test func registeredCodesHaveAKind() {
        #expect(Status.phrases.count == 61)
        #expect(Status.phrases.keys.allSatisfy { Status($0).kind != .other })
        #expect(Status(rawValue: 404).reasonPhrase == "Not Found")
        #expect(Status(451) == .unavailableForLegalReasons)
    }

    @Test func statusIsComparableAndCodedAsANumber() throws {
        #expect(Status.ok < .notFound)
        let data = try JSONEncoder().encode([Status.ok])
        #expect(String(decoding: data, as: UTF8.self) == "[200]")
        #expect(try JSONDecoder().decode([Status].self, from: data) == [.ok])
    }
}
