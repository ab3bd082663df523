// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@testable import CurlewXML

/// Tests of the events of documents.
@Suite(.timeLimit(.minutes(5)))
struct XMLEventTests {
    private let a = XMLName("a")

    private func events(_ text: String, limits: XMLLimits = XMLLimits()) throws(XMLError) -> [XMLEvent] {
        try XMLEvents(limits: limits).events(of: text.utf8)
    }

    @Test func everyKindOfEventIsReported() throws {
        let found = try events("<?xml version='1.0'?><?p  c ?><a>x<!-- c --><![CDATA[<&]]>y<b/></a>\n<!--e--><?q?>")
        #expect(
            found == [
                .processingInstruction(target: "p", content: "c "), .startElement(XMLStartTag(a)), .text("x"),
                .comment(" c "), .cdata("<&"), .text("y"), .startElement(XMLStartTag(XMLName("b"))),
                .endElement(XMLName("b")), .endElement(a), .comment("e"),
                .processingInstruction(target: "q", content: ""),
            ])
    }

    /// libxml2 accepts at most 10 MB at once.
    @Test func longDocumentInOneChunkIsParsed() throws {
        let text = [UInt8](repeating: 0x78, count: 12 << 20)
        let found = try XMLEvents().events(of: Array("<a>".utf8) + text + Array("</a>".utf8))
        let length = found.reduce(0) { sum, event in
            if case .text(let piece) = event { sum + piece.utf8.count } else { sum }
        }
        #expect(length == text.count && found.last == .endElement(a))
        var limits = XMLLimits()
        limits.markup = .mebibytes(20)
        #expect(limits.markup == .mebibytes(9))
        let value = Array("<a b='".utf8) + text + Array("'/>".utf8)
        let error = #expect(throws: XMLError.self) { try XMLEvents(limits: limits).events(of: value) }
        #expect(error?.kind == .limitExceeded)
    }

    @Test func namespacesAreResolved() throws {
        let found = try events("<x:a xmlns:x='urn:x' xmlns='urn:d' b='1' x:b='2' xml:lang='de'><c xmlns=''/></x:a>")
        guard case .startElement(let tag) = found[0], case .startElement(let inner) = found[1] else {
            Issue.record("\(found)")
            return
        }
        #expect(tag.name == XMLName("a", namespace: "urn:x") && tag.name.qualified == "x:a" && tag.name.prefix == "x")
        #expect(tag.namespaces == [XMLNamespace(prefix: "x", uri: "urn:x"), XMLNamespace(prefix: nil, uri: "urn:d")])
        #expect(tag.attributes.map(\.name.qualified) == ["b", "x:b", "xml:lang"])
        #expect(tag["b"] == "1" && tag["b", namespace: "urn:x"] == "2" && tag["x:b"] == nil)
        #expect(tag["lang", namespace: "http://www.w3.org/XML/1998/namespace"] == "de")
        #expect(inner.name == XMLName("c") && inner.namespaces == [XMLNamespace(prefix: nil, uri: "")])
    }

    /// libxml2 leaves "&#38;" in values unless an option makes it expand references.
    @Test func attributeValuesAreExpandedAndNormalized() throws {
        let tag = try #require(try Reading("<a b='1&#38;2&amp;3&lt;&quot;&#x20AC;' c=' x\n\ty '/>").tags.first)
        #expect(tag.attributes.map(\.value) == ["1&2&3<\"€", " x  y "])
    }

    @Test func lineEndsAreNormalized() throws {
        #expect(try Reading("<a>1\r\n2\r3\n4\r\r\n5&#13;</a>").text == "1\n2\n3\n4\n\n5\r")
    }

    /// Neither references nor the chunks of libxml2 or the sender split a text.
    @Test func textIsOneEvent() throws {
        let long = String(repeating: "text &amp; ", count: 500) + "é"
        let reading = try Reading(Array("<a>\(long)</a>".utf8), by: 7)
        #expect(reading.events.count == 3)
        #expect(reading.events[1] == .text(String(repeating: "text & ", count: 500) + "é"))
    }

    @Test(arguments: [1, 5, 1000, 100_000])
    func longTextIsSplitAtTheLimit(_ size: Int) throws {
        var limits = XMLLimits()
        limits.textPiece = 100
        let text = String(repeating: "aé€𝄞b", count: 1000)
        for (start, end) in [("<a>", "</a>"), ("<a><![CDATA[", "]]></a>")] {
            let reading = try Reading(Array((start + text + end).utf8), by: size, limits: limits)
            let lengths = reading.events.dropFirst().dropLast().map { event -> Int in
                switch event {
                case .text(let piece), .cdata(let piece): piece.utf8.count
                default: 0
                }
            }
            #expect(reading.text == text)
            #expect(lengths.dropLast().allSatisfy { 97...100 ~= $0 } && lengths.count > 100, "\(lengths)")
        }
    }

    @Test func cdataSectionsAreSeparateEvents() throws {
        let found = try events("<a><![CDATA[1]]><![CDATA[]]><![CDATA[2]]>3<![CDATA[4]]></a>").dropFirst().dropLast()
        #expect(Array(found) == [.cdata("1"), .cdata("2"), .text("3"), .cdata("4")])
    }

    /// Attribute declarations of the internal subset apply (XML 1.0 §5.1); its other declarations have no effect.
    @Test func attributeDeclarationsOfTheInternalSubsetApply() throws {
        let subset = "<!ELEMENT a ANY><!ATTLIST a k NMTOKEN #IMPLIED d CDATA 'x&amp;y'><!NOTATION n SYSTEM 'n'>"
        let tag = try #require(try Reading("<!DOCTYPE a [\(subset)]><a k='  v '/>").tags.first)
        #expect(tag.attributes == [XMLAttribute(XMLName("k"), "v"), XMLAttribute(XMLName("d"), "x&y")])
    }

    @Test func namesCompareByNamespaceAndIgnoreThePrefix() {
        #expect(XMLName("a", prefix: "p", namespace: "u") == XMLName("a", prefix: "q", namespace: "u"))
        #expect(XMLName("a", namespace: "u") != XMLName("a"))
        #expect(Set([XMLName("a", prefix: "p", namespace: "u"), XMLName("a", namespace: "u")]).count == 1)
        #expect("\(XMLName("a", prefix: "p", namespace: "u"))" == "p:a")
    }

    /// A document with more names than the table of names can hold.
    @Test func namesBeyondTheSizeOfTheNameTableAreRead() throws {
        let names = (0..<2000).map { "n\($0)" }
        let body = names.map { "<\($0)/>" }.joined()
        #expect(try Reading("<a>\(body)</a>").tags.dropFirst().map(\.name.local) == names)
    }
}

/// The events do not depend on the chunks of a document.
@Suite(.timeLimit(.minutes(5)))
struct XMLChunkTests {
    @Test(arguments: Scene.wellFormed)
    func eventsOfWellFormedDocumentsIgnoreChunks(_ text: String) throws {
        let bytes = Array(text.utf8)
        let whole = try Reading(bytes, by: .max)
        #expect(whole.error == nil, "\(text): \(whole.error?.description ?? "")")
        for cut in 1..<bytes.count {
            #expect(try Reading(bytes, cutAt: [cut]) == whole, "\(text) cut at \(cut)")
        }
        for size in 1...9 { #expect(try Reading(bytes, by: size) == whole, "\(text) by \(size)") }
    }

    @Test(arguments: Scene.malformed)
    func errorsOfMalformedDocumentsIgnoreChunks(_ text: String) throws {
        let bytes = Array(text.utf8)
        let whole = try Reading(bytes, by: .max)
        #expect(whole.error != nil, "\(text)")
        for cut in 0..<bytes.count {
            #expect(try Reading(bytes, cutAt: [cut]) == whole, "\(text) cut at \(cut)")
        }
        for size in 1...5 { #expect(try Reading(bytes, by: size) == whole, "\(text) by \(size)") }
    }

    /// Documents that are malformed because one byte is changed or missing.
    @Test func randomlyDamagedDocumentsIgnoreChunks() throws {
        var chance = SeededChance(7)
        for _ in 0..<600 {
            var bytes = Array(Scene.wellFormed.randomElement(using: &chance)?.utf8 ?? "".utf8)
            let place = Int.random(in: 0..<bytes.count, using: &chance)
            let other = Array("<>&;'\"[]!-?/x \u{0}é".utf8).randomElement(using: &chance)
            if Bool.random(using: &chance), let other { bytes[place] = other } else { bytes.remove(at: place) }
            let whole = try Reading(bytes, by: .max)
            for size in [1, 2, 3, 7] {
                let parts = try Reading(bytes, by: size)
                #expect(parts == whole, "\(String(decoding: bytes, as: UTF8.self)) by \(size)")
            }
        }
    }
}
