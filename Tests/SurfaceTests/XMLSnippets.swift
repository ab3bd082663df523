// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import CurlewXML
import FoundationEssentials
import Testing

// Snippets of the doc comments of CurlewXML, verbatim.

// XMLLimits.swift
func snippetOfXMLLimits() -> XMLEvents {
    var limits = XMLLimits()
    limits.depth = 32
    let feed = XMLEvents(limits: limits)
    return feed
}

// XMLError.swift
func snippetOfXMLError(_ data: Data) {
    do {
        _ = try XMLDocument(parsing: data)
    } catch {
        print(error.kind, error.line ?? 0, error.message)
    }
}

// XMLName.swift
func snippetOfXMLName(_ tag: XMLStartTag) -> Int {
    var entries = 0
    if tag.name == XMLName("entry", namespace: "http://www.w3.org/2005/Atom") { entries += 1 }
    return entries
}

// Events/XMLEvents.swift
func snippetOfXMLEvents(_ api: JSONClient, _ response: IncomingResponse) async throws -> Int {
    var entries = 0
    for try await event in api.stream("feed.xml", using: .xmlEvents) {
        if case .startElement(let tag) = event, tag.name.local == "entry" { entries += 1 }
    }
    for try await event in XMLEvents().events(in: response.bytes) { print(event) }
    return entries
}

// Events/XMLEventSequence.swift
func snippetOfXMLEventSequence(_ chunks: AsyncStream<Data>) -> XMLEventSequence<AsyncStream<Data>> {
    let events = XMLEvents().events(in: chunks)
    return events
}

// Bindings/XMLDocument.swift
func snippetOfXMLDocument(_ data: Data) throws {
    let feed = try XMLDocument(parsing: data)
    for entry in try feed.nodes("//a:entry", namespaces: ["a": "http://www.w3.org/2005/Atom"]) {
        print(try entry.string("a:title", namespaces: ["a": "http://www.w3.org/2005/Atom"]))
    }
}

// Bindings/XMLNode.swift
func snippetOfXMLNode(_ document: XMLDocument) {
    for item in document.root.elements where item["id"] != nil {
        print(item.name?.local ?? "", item.text)
    }
}

// Documents/XMLDocumentSerializer.swift
func snippetOfXMLDocumentSerializer(_ api: JSONClient) async throws {
    let feed = try await api.get("feed.xml", using: .xmlDocument)
    print(try feed.string("/*/*[local-name() = 'title']"))
}

// Documents/HTMLDocument.swift
func snippetOfHTMLDocument(_ data: Data) throws {
    let page = try HTMLDocument(parsing: data)
    for heading in try page.nodes("//h2[@id]") { print(heading["id"] ?? "", heading.text) }
}

// Documents/HTMLSerializer.swift
func snippetOfHTMLSerializer(_ api: JSONClient) async throws {
    let page = try await api.get("news", using: .html)
    print(page.title ?? "", try page.string("//meta[@name = 'author']/@content"))
}

// Documentation/Streams.md
func guideToHTML(_ api: JSONClient, _ url: URL) async throws -> URL? {
    let page = try await api.get("news", using: .html)
    print(page.title ?? "untitled")
    for item in try page.nodes("//ul[@id = 'headlines']/li") { print(item.text) }
    let next = page.links(at: url).first { $0.path.hasSuffix("/2") }
    return next
}

/// Tests of both XML serializers through the public module.
@Suite(.timeLimit(.minutes(5)))
struct XMLSurfaceTests {
    @Test func documentAndEventSerializersReadAFeed() async throws {
        let feed = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><title>One</title></entry><entry/></feed>"
        let server = try MockServer { _ in
            .bytes(Array(feed.utf8)).field("Content-Type", "application/atom+xml")
        }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let document = try await api.get("feed.xml", using: .xmlDocument)
        #expect(try document.string("//a:title", namespaces: ["a": "http://www.w3.org/2005/Atom"]) == "One")
        var entries = 0
        for try await event in api.stream("feed.xml", using: .xmlEvents) {
            if case .startElement(let tag) = event { entries += snippetOfXMLName(tag) }
        }
        #expect(entries == 2)
    }

    @Test func htmlSerializerReadsAPage() async throws {
        let text = "<title>News</title><ul id=headlines><li>One<li>Two</ul><a href='/1'>1</a><a href='news/2'>2</a>"
        let server = try MockServer { _ in .bytes(Array(text.utf8)).field("Content-Type", "text/html") }
        let api = Client(try BaseURL(server.url("/")), session: Session())
        let url = try #require(URL(string: "https://a.example/"))
        #expect(try await guideToHTML(api, url)?.absoluteString == "https://a.example/news/2")
        try await snippetOfHTMLSerializer(api)
        try snippetOfHTMLDocument(Data(text.utf8))
    }
}
