// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@testable import CurlewXML

/// Tests of hostile documents.
@Suite(.timeLimit(.minutes(5)))
struct XMLSafetyTests {
    /// A file with a secret that exists during a test.
    private final class Secret: Sendable {
        static let text = "the-secret-0xC0FFEE"
        let path: String

        init(_ content: String = Secret.text) throws {
            path = FileManager.default.temporaryDirectory.appending(path: "curlew-xml-\(UUID().uuidString)").path
            try Data(content.utf8).write(to: URL(filePath: path))
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    /// Reads a document as events and as a tree; both must refuse it, or both must accept it without the secret.
    private func readings(_ text: String) throws -> [XMLError?] {
        let reading = try Reading(text)
        #expect(!"\(reading.events)".contains(Secret.text))
        do throws(XMLError) {
            let document = try XMLDocument(parsing: Data(text.utf8))
            #expect(!document.xml.contains(Secret.text) && !document.root.text.contains(Secret.text))
            return [reading.error, nil]
        } catch {
            #expect(!error.message.contains(Secret.text))
            return [reading.error, error]
        }
    }

    private func isRefused(_ text: String, _ kind: XMLError.Kind, code: Int? = nil) throws {
        for error in try readings(text) {
            #expect(error?.kind == kind, "\(text.prefix(100)): \(error?.description ?? "accepted")")
            if let code { #expect(error?.code == code) }
        }
    }

    private func isRead(_ text: String) throws {
        #expect(try readings(text).allSatisfy { $0 == nil }, "\(text)")
    }

    @Test func externalEntitiesDoNotReadFiles() throws {
        let secret = try Secret()
        for path in [secret.path, "file://\(secret.path)"] {
            try isRefused("<!DOCTYPE a [<!ENTITY e SYSTEM '\(path)'>]><a>&e;</a>", .undefinedEntity)
            try isRefused("<!DOCTYPE a [<!ENTITY e PUBLIC 'x' '\(path)'>]><a b='&e;'/>", .undefinedEntity)
            try isRefused("<!DOCTYPE a [<!ENTITY % p SYSTEM '\(path)'>%p;]><a>&e;</a>", .undefinedEntity)
            try isRefused("<!DOCTYPE a [<!ENTITY % p SYSTEM '\(path)'>%p;]><a/>", .undefinedEntity)
            try isRead("<!DOCTYPE a [<!ENTITY % p SYSTEM '\(path)'>]><a/>")
            try isRead("<!DOCTYPE a SYSTEM '\(path)'><a/>")
        }
    }

    /// Declarations in external files have no effect.
    @Test func externalSubsetsAreNotRead() throws {
        let subset = try Secret("<!ENTITY e '\(Secret.text)'><!ATTLIST a b CDATA '\(Secret.text)'>")
        try isRefused("<!DOCTYPE a SYSTEM '\(subset.path)'><a>&e;</a>", .undefinedEntity, code: 27)
        try isRefused("<!DOCTYPE a SYSTEM '\(subset.path)' []><a b='&e;'/>", .undefinedEntity)
        try isRefused("<!DOCTYPE a [<!ENTITY % p SYSTEM '\(subset.path)'>%p;]><a>&e;</a>", .undefinedEntity)
        let reading = try Reading("<!DOCTYPE a SYSTEM '\(subset.path)'><a/>")
        #expect(reading.tags == [XMLStartTag(XMLName("a"))])
    }

    @Test func xincludeElementsAreNotExpanded() throws {
        let secret = try Secret()
        let text = "<a xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include parse='text' href='\(secret.path)'/></a>"
        try isRead(text)
        #expect(try Reading(text).tags.map(\.name.local) == ["a", "include"])
    }

    @Test func externalEntitiesSendNoRequests() throws {
        let server = try MockServer { _ in .text("<!ENTITY e '\(Secret.text)'>") }
        let url = server.url("/x.dtd")
        try isRefused("<!DOCTYPE a [<!ENTITY e SYSTEM '\(url)'>]><a>&e;</a>", .undefinedEntity)
        try isRefused("<!DOCTYPE a [<!ENTITY % p SYSTEM '\(url)'>%p;]><a>&e;</a>", .undefinedEntity)
        try isRefused("<!DOCTYPE a SYSTEM '\(url)'><a>&e;</a>", .undefinedEntity)
        try isRead("<?xml-stylesheet href='\(url)'?><!DOCTYPE a PUBLIC 'x' '\(url)'><a xmlns:s='\(url)' s:l='\(url)'/>")
        #expect(server.requests.isEmpty)
    }

    // MARK: Bombs

    /// A document cannot redefine the five predefined entities of XML.
    @Test func predefinedEntitiesCannotBeRedefined() throws {
        let text =
            "<!DOCTYPE a [<!ENTITY lt '&#38;#60;'><!ENTITY amp '&#38;#38;'><!ENTITY quot 'x'>]><a b='&quot;'>&lt;&amp;</a>"
        let reading = try Reading(text)
        #expect(reading.text == "<&" && reading.tags.first?["b"] == "\"")
        #expect(try XMLDocument(parsing: Data(text.utf8)).root.text == "<&")
    }

    @Test func billionLaughsAttackIsRejected() throws {
        let levels = (1...9).map { "<!ENTITY l\($0) '\(String(repeating: "&l\($0 - 1);", count: 10))'>" }.joined()
        try isRefused("<!DOCTYPE a [<!ENTITY l0 'lol'>\(levels)]><a>&l9;</a>", .undefinedEntity, code: 26)
        try isRefused("<!DOCTYPE a [<!ENTITY l0 'lol'>\(levels)]><a b='&l9;'/>", .undefinedEntity, code: 26)
        try isRefused("<!DOCTYPE a [<!ENTITY l0 'lol'>\(levels)<!ATTLIST a b CDATA '&l9;'>]><a/>", .undefinedEntity)
    }

    @Test func quadraticBlowupIsRejected() throws {
        let long = String(repeating: "x", count: 100_000)
        let many = String(repeating: "&e;", count: 30_000)
        try isRefused("<!DOCTYPE a [<!ENTITY e '\(long)'>]><a>\(many)</a>", .undefinedEntity)
        try isRefused(
            "<!DOCTYPE a [<!ENTITY % e '\(long)'>\(String(repeating: "%e;", count: 9_000))]><a>&e;</a>",
            .undefinedEntity)
    }

    /// Default attributes must not turn a short element into many or long attributes.
    @Test func defaultAttributesAreLimited() throws {
        func document(_ count: Int, _ length: Int, elements: Int) -> String {
            let value = String(repeating: "v", count: length)
            let list = (0..<count).map { "b\($0) CDATA '\(value)'" }.joined(separator: " ")
            return "<!DOCTYPE a [<!ATTLIST e \(list)>]><a>\(String(repeating: "<e/>", count: elements))</a>"
        }
        try isRead(document(64, 10, elements: 1))
        try isRefused(document(65, 1, elements: 1), .limitExceeded)
        try isRefused(document(1, 4097, elements: 1), .limitExceeded)
        try isRead(document(1, 20, elements: 100_000))
        try isRefused(document(1, 4000, elements: 1000), .limitExceeded)
    }

    // MARK: Sizes

    @Test func elementDepthIsLimited() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        }
        try isRead(nested(256))
        try isRefused(nested(257), .limitExceeded)
        try isRefused(nested(100_000), .limitExceeded)
        var limits = XMLLimits()
        limits.depth = 3
        #expect(try Reading(nested(3), limits: limits).error == nil)
        #expect(try Reading(nested(4), limits: limits).error?.kind == .limitExceeded)
        limits.depth = 1000
        #expect(limits.depth == 256, "the limit can only be lowered")
        // Siblings are not nested.
        try isRead("<a>" + String(repeating: "<b><c/></b>", count: 1000) + "</a>")
    }

    @Test func attributeCountIsLimited() throws {
        func element(_ count: Int) -> String { "<a \((0..<count).map { "a\($0)='v'" }.joined(separator: " "))/>" }
        try isRead(element(256))
        try isRefused(element(257), .limitExceeded)
        // libxml2 compares each attribute with all others.
        try isRefused(element(100_000), .limitExceeded)
        var limits = XMLLimits()
        limits.attributes = 2
        #expect(try Reading("<a b='' xmlns='x'/>", limits: limits).error == nil)
        #expect(try Reading("<a b='' xmlns='x' c=''/>", limits: limits).error?.kind == .limitExceeded)
    }

    @Test func nameAndMarkupLengthsAreLimited() throws {
        let name = String(repeating: "n", count: 1024)
        try isRead("<\(name) p\(name.dropFirst())='' />")
        for text in ["<n\(name)/>", "<a n\(name)=''/>", "<a xmlns:n\(name)='u'/>", "<n\(name):a xmlns:n\(name)='u'/>"] {
            try isRefused(text, .limitExceeded)
        }
        var limits = XMLLimits()
        limits.markup = 20
        for text in [
            "<a b='0123456789012'/>", "<a><!--01234567890123--></a>", "<a><?p 0123456789012345?></a>",
            "<!DOCTYPE a SYSTEM 'xy'><a/>", "<a>&a012345678901234567890;</a>",
        ] {
            for size in [1, 1000] {
                let error = try Reading(Array(text.utf8), by: size, limits: limits).error
                #expect(error?.kind == .limitExceeded && error?.hint?.contains("limits.markup") == true, "\(text)")
            }
        }
        #expect(
            try Reading("<a>\(String(repeating: "x", count: 1000))<![CDATA[\(name)]]></a>", limits: limits).error == nil
        )
    }

    /// libxml2 searches all namespaces in scope.
    @Test func namespacesInScopeAreLimited() throws {
        func nested(_ depth: Int) -> String {
            let all = (0..<100).map { "xmlns:p\($0)='u'" }.joined(separator: " ")
            return String(repeating: "<a \(all)>", count: depth) + String(repeating: "</a>", count: depth)
        }
        try isRead(nested(10))
        try isRefused(nested(11), .limitExceeded)
        try isRead("<r>" + String(repeating: nested(5), count: 5) + "</r>")
    }

    /// The time for an incomplete tag or comment that arrives slowly is proportional to its length.
    @Test func parsingByteByByteTakesLinearTime() throws {
        let value = String(repeating: "v", count: 150_000)
        for text in ["<a b='\(value)'/>", "<a><!--\(value)--></a>", "<a>\(value)</a>", "<a><![CDATA[\(value)]]></a>"] {
            let clock = ContinuousClock()
            let start = clock.now
            #expect(try Reading(Array(text.utf8), by: 1).error == nil)
            let time = start.duration(to: clock.now)
            #expect(time < .seconds(20), "\(text.prefix(12)) took \(time)")
        }
    }

    /// Names that never repeat fill libxml2's dictionary, which is limited to ten megabytes.
    @Test func distinctNamesAreLimited() throws {
        let parser = try XMLEventParser(charset: nil, limits: XMLLimits())
        var failure: XMLError? = parser.parse("<a>".utf8).failure
        for start in 0..<400 where failure == nil {
            let names = (0..<200).map { "<n\(start)-\($0)-\(String(repeating: "x", count: 200))/>" }.joined()
            failure = parser.parse(names.utf8).failure
        }
        #expect(failure?.kind == .limitExceeded, "\(failure?.description ?? "no end")")
    }

    @Test func inputAfterAnErrorIsIgnored() throws {
        let parser = try XMLEventParser(charset: nil, limits: XMLLimits())
        let first = parser.parse("<a>x</b><c>".utf8)
        let second = parser.parse("<d/></c></a>".utf8)
        #expect(first.events.count == 2 && first.failure?.code == 76 && second.events.isEmpty)
        #expect(second.failure == first.failure)
    }
}
