// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Foundation
import FoundationXML
import Testing

@testable import CurlewXML

/// Tests of whole documents and of XPath queries in them.
@Suite(.timeLimit(.minutes(5)))
struct XMLDocumentTests {
    private let text = """
        <?xml version='1.0'?><!-- top --><l:shelf xmlns:l='urn:l' xmlns='urn:b' kind="a&amp;b">
        <book id='1' l:lang='de'>Eins<![CDATA[<&>]]></book><book id='2'><!-- c -->Zwei &#38; mehr</book><?p x?>
        <n xmlns=''>3.5</n></l:shelf>
        """
    private let spaces = ["b": "urn:b", "l": "urn:l"]

    private func document(_ text: String, limits: XMLLimits = XMLLimits()) throws(XMLError) -> CurlewXML.XMLDocument {
        try CurlewXML.XMLDocument(parsing: Data(text.utf8), limits: limits)
    }

    @Test func nodesHaveNamesAttributesAndParents() throws {
        let document = try document(text)
        let root = document.root
        #expect(root.kind == .element && root.name == XMLName("shelf", namespace: "urn:l"))
        #expect(root.name?.qualified == "l:shelf" && root["kind"] == "a&b" && root.attributes.count == 1)
        #expect(root.namespaces.map(\.uri) == ["urn:l", "urn:b"] && root.parent == document.node)
        #expect(root.elements.map { $0.name?.local } == ["book", "book", "n"])
        let first = root.elements[0]
        #expect(first.children.map(\.kind) == [.text, .cdata] && first.text == "Eins<&>" && first.parent == root)
        #expect(first["lang", namespace: "urn:l"] == "de" && first["lang"] == nil && first.document === document)
        #expect(root.elements[1].text == "Zwei & mehr" && root.elements[1].children[0].kind == .comment)
        #expect(
            root.elements[2].name == XMLName("n") && root.elements[2].namespaces == [XMLNamespace(prefix: nil, uri: "")]
        )
        let instruction = try #require(root.children.first { $0.kind == .processingInstruction })
        #expect(instruction.name == XMLName("p") && instruction.text == "x" && instruction.children.isEmpty)
        #expect(document.node.kind == .document && document.node.children.map(\.kind) == [.comment, .element])
        #expect(document.node.parent == nil && first.children[0].name == nil && first.children[0].attributes.isEmpty)
        #expect(first.children[0].namespaces.isEmpty && first.children[0]["id"] == nil)
        #expect("\(document) \(first) \(first.children[0])" == "XML document <l:shelf> element book text")
        #expect(Set([first, root.elements[0], root]).count == 2)
    }

    @Test func xpathQueriesReturnNodesAndValues() throws {
        let document = try document(text)
        #expect(try document.nodes("//b:book", namespaces: spaces).map { $0["id"] } == ["1", "2"])
        #expect(try document.nodes("//b:book[2] | //b:book[1]", namespaces: spaces).map { $0["id"] } == ["1", "2"])
        let ids = try document.nodes("//@id")
        #expect(
            ids.map(\.kind) == [.attribute, .attribute] && ids.map(\.text) == ["1", "2"] && ids[0].xml == " id=\"1\"")
        #expect(ids[0].name == XMLName("id") && ids[0].parent == document.root.elements[0])
        #expect(try ids[1].string("..") == "Zwei & mehr")
        #expect(try document.root.nodes("b:book", namespaces: spaces).count == 2)
        #expect(try document.nodes("b:book", namespaces: spaces).isEmpty, "relative to the document")
        #expect(try document.evaluate("count(//*)") == .number(4))
        #expect(try document.evaluate("/x = 1") == .boolean(false))
        #expect(try document.evaluate("position()") == .number(1))
        #expect(try document.evaluate("string(//n)") == .string("3.5"))
        #expect(try document.evaluate("//none") == .nodes([]))
        #expect(
            try document.string("//n") == "3.5" && document.string("1 + 1") == "2" && document.string("//none") == "")
        #expect(try document.nodes("//namespace::*").isEmpty)
        #expect(try document.nodes("/").map(\.kind) == [.document])
    }

    @Test(arguments: ["//b:x", "//[", "", "unknown()", "$v", "1 + 1", "'a'", "\u{0}", "//x\u{0}y"])
    func invalidXPathsThrow(_ path: String) throws {
        let document = try document(text)
        let error = #expect(throws: XMLError.self) { try document.nodes(path) }
        #expect(error?.kind == .invalidPath && error?.line == nil)
        #expect(error?.hint?.contains("namespaces") ?? false == (path == "//b:x"))
        // The next query has its own context.
        #expect(try document.nodes("//*").count == 4)
    }

    @Test func deepAndLongXPathQueriesAreLimited() throws {
        let document = try document("<a>" + String(repeating: "<b/>", count: 3000) + "</a>")
        #expect(try document.evaluate("count(//b)") == .number(3000))
        let deep = String(repeating: "(", count: 100_000) + "1" + String(repeating: ")", count: 100_000)
        #expect(throws: XMLError.self) { try document.evaluate(deep) }
        #expect(throws: XMLError.self) { try document.evaluate("count(//b[count(//b[count(//b) > 1]) > 1])") }
    }

    @Test func documentIsSerializedToText() throws {
        let document = try document(
            "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE a [<!ENTITY e 'x'>]><a b=\"é&lt;'&quot;\">ü&amp;<b/><![CDATA[<]]></a>"
        )
        #expect(
            document.xml
                == "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a b=\"é&lt;'&quot;\">ü&amp;<b/><![CDATA[<]]></a>\n")
        #expect(document.data == Data(document.xml.utf8) && document.node.xml == document.xml)
        #expect(document.root.elements[0].xml == "<b/>" && document.root.children[0].xml == "ü&amp;")
        #expect(try self.document(document.xml).xml == document.xml)
    }

    @Test(arguments: Scene.wellFormed)
    func treesAgreeWithEvents(_ text: String) throws {
        let document = try document(text)
        let reading = try Reading(text)
        #expect(document.root.text == reading.text)
        #expect(try document.nodes("//*").map(\.name) == reading.tags.map(\.name))
        let attributes = try document.nodes("//*").map(\.attributes)
        #expect(attributes == reading.tags.map(\.attributes))
        #expect(try document.nodes("//*").map(\.namespaces) == reading.tags.map(\.namespaces))
    }

    @Test(arguments: Scene.malformed)
    func treesAndEventsRejectTheSameDocuments(_ text: String) throws {
        let error = #expect(throws: XMLError.self) { try document(text) }
        #expect(try Reading(text).error == error)
    }

    @Test func nodeAndDocumentLimitsAreEnforced() throws {
        var limits = XMLLimits()
        limits.nodes = 5
        #expect(try document("<a b=''><c/></a>", limits: limits).root.elements.count == 1)
        for text in [
            "<a b='' c=''><c/></a>", "<a><b/><b/><b/><b/><b/></a>", "<a>x<b/>y<b/>z</a>",
            "<a><?p?><!----><?p?><!----><?p?></a>",
            "<a><![CDATA[]]><![CDATA[]]><![CDATA[]]><![CDATA[]]><![CDATA[]]></a>",
        ] {
            #expect((try? document(text, limits: limits)) == nil, "\(text)")
        }
        // One text, although libxml2 reports it in parts.
        #expect(
            try document("<a>\(String(repeating: "x&amp;", count: 1000))</a>", limits: limits).root.children.count == 1)
        limits.document = 100
        let long = "<a>\(String(repeating: "x", count: 100))</a>"
        #expect(
            #expect(throws: XMLError.self) { try document(long, limits: limits) }?.hint?.contains("limits.document")
                == true)
    }

    /// libxml2 reports long sections in parts of 300 bytes.
    @Test func longCDATASectionIsOneNode() throws {
        let section = String(repeating: "é<", count: 5000)
        let builder = try XMLDocumentBuilder(charset: nil, limits: XMLLimits())
        for byte in "<a><![CDATA[\(section)]]><![CDATA[x]]></a>".utf8 { try builder.append([byte]) }
        #expect(try document("<a><![CDATA[\(section)]]><![CDATA[x]]></a>").root.children.map(\.text) == [section, "x"])
    }

    @Test func overlongTextExceedsTheLimit() throws {
        let long = String(repeating: "x", count: 10_000_001)
        for text in ["<a>\(long)</a>", "<a><![CDATA[\(long)]]></a>"] {
            #expect(#expect(throws: XMLError.self) { try document(text) }?.kind == .limitExceeded)
        }
    }

    /// Many tasks can read a tree at once without locks.
    @Test func concurrentReadersShareADocument() async throws {
        let items = (0..<2000).map { "<i n='\($0)'>t\($0)</i>" }.joined()
        let document = try document("<a>\(items)</a>")
        let expected = document.xml
        let sums = try await withThrowingTaskGroup(of: Double.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<20 {
                        let number = task * 20 + round
                        #expect(try document.string("//i[@n = \(number)]") == "t\(number)")
                        #expect(throws: XMLError.self) { try document.nodes("//x:y") }
                        if round == 10 { #expect(document.xml == expected) }
                    }
                    guard case .number(let sum) = try document.evaluate("sum(//@n)") else { return 0 }
                    return sum
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sums == Array(repeating: 1_999_000, count: 8))
    }

    /// Nodes keep their document alive.
    @Test func nodesOutliveTheirDocument() throws {
        let node = try document("<a><b>x</b></a>").root.elements[0]
        #expect(node.text == "x" && node.parent?.name == XMLName("a"))
    }

    /// The type can be used together with a module that has a type of the same name.
    @Test func documentCoexistsWithFoundationXML() throws {
        let theirs = try FoundationXML.XMLDocument(xmlString: "<a>x</a>")
        let ours: CurlewXML.XMLDocument = try document("<a>x</a>")
        #expect(theirs.rootElement()?.stringValue == ours.root.text)
    }

    @Test func documentIsParsedFromAnAsyncSequence() async throws {
        let pieces = AsyncStream<[UInt8]> { continuation in
            for byte in text.utf8 { continuation.yield([byte]) }
            continuation.finish()
        }
        #expect(try await CurlewXML.XMLDocument(parsing: pieces).xml == document(text).xml)
    }
}
