// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

@Suite("Media types, RFC 9110 §8.3.1")
struct MediaTypeTests {
    static let texts: [(String, String?)] = [
        ("text/html", "text/html"), (" Text/HTML ;Charset=UTF-8", "text/html; charset=UTF-8"),
        ("a/b;x=1;X=2;y=\"q\\\"r s\"", "a/b; x=1; y=\"q\\\"r s\""), ("a/b; x=\"\"", "a/b; x=\"\""),
        ("a/b; =1; x y=2; z", "a/b"), ("*/*;q=0.1", "*/*; q=0.1"), ("application/*+json", "application/*+json"),
        ("a/b; x=\"1\u{7F}\u{1}2\t3\"", "a/b; x=\"12\t3\""), ("a/b\t", "a/b"), ("a/b; x=\"\\\\\"", "a/b; x=\"\\\\\""),
        ("", nil), ("text", nil), ("text/", nil), ("/html", nil), ("text/html/x", nil), ("te xt/html", nil),
        ("text/ht,ml", nil), (";charset=utf-8", nil),
    ]

    @Test(arguments: texts)
    func mediaTypesAreParsed(text: String, description: String?) {
        #expect(MediaType(text)?.description == description)
    }

    // RS-05, RS-12: parameters do not matter, suffixes have ranges.
    static let matches: [(MediaType, MediaType, Bool)] = [
        ("image/png", "image/png", true), ("image/png", "image/*", true), ("image/png", "*/*", true),
        ("IMAGE/PNG; a=b", "image/png; c=d", true), ("image/png", "image/jpeg", false), ("image/png", "text/*", false),
        ("application/problem+json", "application/*+json", true), ("application/json", "application/*+json", false),
        ("application/+json", "application/*+json", false), ("application/a+json", "text/*+json", false),
        ("application/a+b+json", "application/*+json", true), ("application/a+xml", "application/*+json", false),
        ("application/a+json", "application/json", false), ("text/html", "*/html", true), ("text/html", "*/xml", false),
    ]

    @Test(arguments: matches)
    func rangesMatchMediaTypes(type: MediaType, range: MediaType, isMatch: Bool) {
        #expect(type.matches(range) == isMatch)
    }

    @Test func parameterNamesIgnoreCase() {
        let type: MediaType = "multipart/mixed; Boundary=\"a b\""
        #expect(type[parameter: "BOUNDARY"] == "a b" && type[parameter: "charset"] == nil)
        #expect(type.type == "multipart" && type.subtype == "mixed")
    }

    @Test func suffixRangesAreNotAcceptable() {
        #expect(MediaType.any.isAcceptable && ("image/*" as MediaType).isAcceptable && MediaType.json.isAcceptable)
        #expect(!("application/*+json" as MediaType).isAcceptable)
        #expect(MediaType.any.isAny && ("*/*;q=0.1" as MediaType).isAny && !("a/*" as MediaType).isAny)
    }

    @Test func mediaTypeIsCodedAsAString() throws {
        let types: [MediaType] = [.problem, .form, .propertyList, .text, .octetStream]
        let data = try JSONEncoder().encode(types)
        #expect(try JSONDecoder().decode([MediaType].self, from: data) == types)
        #expect(throws: DecodingError.self) { try JSONDecoder().decode([MediaType].self, from: Data(#"["x"]"#.utf8)) }
    }
}
