// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import CurlewXML
import FoundationEssentials
import Testing

/// Tests of XML from responses and from other sequences.
@Suite(.timeLimit(.minutes(5)))
struct XMLSerializerTests {
    private func api(_ response: MockResponse) throws -> (MockServer, JSONClient) {
        let server = try MockServer { _ in response }
        return (server, Client(try BaseURL(server.url("/")), session: Session()))
    }

    private func xml(_ text: String, _ type: String = "application/xml") -> MockResponse {
        .bytes(Array(text.utf8)).field("Content-Type", type)
    }

    @Test(arguments: [1, 3, 100])
    func eventsAreStreamedAsTheyArrive(_ size: Int) async throws {
        let (server, api) = try api(xml("<feed><entry>é</entry></feed>", "application/atom+xml").chunked(size: size))
        var events: [XMLEvent] = []
        for try await event in api.stream("feed.xml", using: .xmlEvents) { events.append(event) }
        let (feed, entry) = (XMLName("feed"), XMLName("entry"))
        #expect(
            events == [
                .startElement(XMLStartTag(feed)), .startElement(XMLStartTag(entry)), .text("é"), .endElement(entry),
                .endElement(feed),
            ])
        #expect(
            server.requests.first?.field("Accept")
                == "application/xml, text/xml, application/atom+xml, application/rss+xml, application/soap+xml")
    }

    /// The sequence yields the events before a mistake at once, because a stream may stay open for a long time.
    @Test func eventsBeforeAnErrorAreDelivered() async throws {
        for size in [1, 100] {
            let (server, api) = try api(xml("<a>text").chunked(size: size))
            var events: [XMLEvent] = []
            let error = await #expect(throws: NetworkError.self) {
                for try await event in api.stream("feed.xml", using: .xmlEvents) { events.append(event) }
            }
            #expect(error?.kind == .decodingFailed && error?.cause is XMLError)
            #expect(events == [.startElement(XMLStartTag(XMLName("a"))), .text("text")])
            #expect(server.requests.count == 1)
        }
        var (state, events) = (try XMLEvents().begin(ResponseHead(status: .ok)), [XMLEvent]())
        let chunk = ByteChunk(Array("<a><b></a>".utf8))
        #expect(throws: NetworkError.self) { try XMLEvents().decode(chunk, &state, into: &events) }
        #expect(events.count == 2)
    }

    @Test func documentSerializerReturnsADocument() async throws {
        let (server, api) = try api(xml("<feed><title>x</title></feed>", "text/xml; charset=utf-8").chunked(size: 2))
        let document = try await api.get("feed.xml", using: .xmlDocument)
        #expect(try document.string("/feed/title") == "x" && server.requests.count == 1)
    }

    /// The server's charset overrides the document's declaration (RFC 7303 §3).
    @Test func charsetOfTheResponseOverridesTheDocument() async throws {
        let body = Array("<?xml version='1.0' encoding='utf-8'?><a>".utf8) + [0xE9] + Array("</a>".utf8)
        let (server, api) = try api(.bytes(body).field("Content-Type", "text/xml; charset=\"ISO-8859-1\""))
        #expect(try await api.get("", using: .xmlDocument).root.text == "é")
        var events: [XMLEvent] = []
        for try await event in api.stream("", using: .xmlEvents) { events.append(event) }
        #expect(events.contains(.text("é")) && server.requests.count == 2)
        let own = try await api.get("", using: XMLDocumentSerializer(charset: "windows-1251"))
        #expect(own.root.text == "й")
    }

    @Test func otherContentTypesAreRejected() async throws {
        let (server, api) = try api(xml("<html/>", "text/html"))
        let document = await #expect(throws: NetworkError.self) { try await api.get("", using: .xmlDocument) }
        let stream = await #expect(throws: NetworkError.self) {
            for try await _ in api.stream("", using: .xmlEvents) {}
        }
        #expect(document?.kind == .unacceptableContentType && stream?.kind == .unacceptableContentType)
        #expect(server.requests.count == 2)
    }

    @Test func malformedResponsesFailWithPosition() async throws {
        let (server, api) = try api(xml("<a>\n<b>secret</c></a>").chunked(size: 5))
        let whole = await #expect(throws: NetworkError.self) { try await api.get("", using: .xmlDocument) }
        var events: [XMLEvent] = []
        let parts = await #expect(throws: NetworkError.self) {
            for try await event in api.stream("", using: .xmlEvents) { events.append(event) }
        }
        for error in [whole, parts] {
            let cause = try #require(error?.cause as? XMLError)
            #expect(error?.kind == .decodingFailed && error?.phase == .decoding && error?.response?.status == .ok)
            #expect(cause.kind == .malformed && cause.code == 76 && cause.line == 2 && cause.column != nil)
            #expect(error?.message.contains("line 2") == true && error?.detailedDescription.contains("secret") == false)
        }
        #expect(events.last == .text("secret") && server.requests.count == 2)
    }

    /// A response that ends too early is an error, even if all its events were valid.
    @Test(arguments: ["<a><b/>", "<a>text", "", "<a>&am"])
    func truncatedDocumentsFail(_ text: String) async throws {
        let (server, api) = try api(xml(text))
        let error = await #expect(throws: NetworkError.self) {
            for try await _ in api.stream("", using: .xmlEvents) {}
        }
        #expect(error?.kind == .decodingFailed && error?.cause is XMLError && server.requests.count == 1)
    }

    /// Leaving the loop early ends the transfer, and the server does not send bytes that were not requested.
    @Test func leavingTheStreamEarlyEndsTheTransfer() async throws {
        let item = "<item>\(String(repeating: "x", count: 1000))</item>"
        let body = "<a>" + String(repeating: item, count: 3000) + "</a>"
        let (server, api) = try api(xml(body).chunked())
        var count = 0
        for try await event in api.stream("", using: .xmlEvents(limits: XMLLimits())) {
            if case .endElement = event { count += 1 }
            if count == 10 { break }
        }
        #expect(count == 10 && server.requests.count == 1)
        let document = try await api.get("", using: .xmlDocument(limits: XMLLimits()))
        #expect(try document.evaluate("count(//item)") == .number(3000))
    }

    // MARK: Without a client

    private struct Odd: Error {}

    private func pieces(_ text: String, of size: Int, endingIn error: (any Error)? = nil) -> AsyncThrowingStream<
        Data, any Error
    > {
        AsyncThrowingStream { continuation in
            var rest = Data(text.utf8)
            while !rest.isEmpty {
                continuation.yield(Data(rest.prefix(size)))
                rest = rest.dropFirst(size)
            }
            continuation.finish(throwing: error)
        }
    }

    @Test(arguments: [1, 2, 7, 200_000])
    func eventsOfOtherAsyncSequencesAreRead(_ size: Int) async throws {
        let text = "<a>" + String(repeating: "<b c='d'/>", count: 10_000) + "</a>"
        var events: [XMLEvent] = []
        for try await event in XMLEvents().events(in: pieces(text, of: size)) { events.append(event) }
        #expect(try events == XMLEvents().events(of: text.utf8) && events.count == 20_002)
    }

    @Test func errorsOfOtherAsyncSequencesAreThrown() async throws {
        var iterator = XMLEvents().events(in: pieces("<a>x</b>", of: 3)).makeAsyncIterator()
        var events: [XMLEvent] = []
        var errors: [any Error] = []
        while errors.count < 2 {
            do {
                guard let event = try await iterator.next() else { break }
                events.append(event)
            } catch {
                errors.append(error)
            }
        }
        #expect(events == [.startElement(XMLStartTag(XMLName("a"))), .text("x")])
        #expect(errors.map { ($0 as? XMLError)?.code } == [76, 76], "the same error is thrown again")
        await #expect(throws: Odd.self) {
            for try await _ in XMLEvents().events(in: pieces("<a>", of: 3, endingIn: Odd())) {}
        }
        let short = await #expect(throws: XMLError.self) {
            for try await _ in XMLEvents().events(in: pieces("<a>", of: 3)) {}
        }
        #expect(short?.kind == .malformed)
        var ended = XMLEvents().events(in: pieces("<a/>", of: 9)).makeAsyncIterator()
        for _ in 0..<2 { _ = try await ended.next() }
        for _ in 0..<2 { #expect(try await ended.next() == nil) }
    }
}

/// Abandoned documents do not leak memory.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct XMLMemoryTests {
    /// Returns the resident memory in KiB.
    private static func residentMemory() throws -> Int {
        let status = try String(contentsOf: URL(filePath: "/proc/self/status"), encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return try #require(line.flatMap { Int($0.filter(\.isNumber)) })
    }

    /// Reads documents with unused entities, an incomplete document and a malformed document.
    private static func abandon(rounds: Int) async throws {
        let long = String(repeating: "v", count: 20_000)
        let start =
            "<!DOCTYPE a [<!ENTITY e '\(long)'><!ATTLIST a b CDATA 'c'><!NOTATION n SYSTEM 'n'>]>"
            + "<a xmlns='u'><b c='\(long)'>\(long)"
        for round in 0..<rounds {
            let text = start + ["", "<![CDATA[\(long)", "</c>", "</b></a>"][round % 4]
            var iterator = XMLEvents().events(in: Once(Data(text.utf8))).makeAsyncIterator()
            _ = try await iterator.next()
            _ = try? XMLDocument(parsing: Data(text.utf8)).nodes(round % 8 == 3 ? "//x:y" : "//*")
            _ = try? XMLEvents().events(of: text.utf8)
            let page = "<p title='\(long)'>\(long)" + ["", String(repeating: "<b>", count: 300), "<script>"][round % 3]
            _ = try? HTMLDocument(parsing: Data(page.utf8)).html
            _ = try? await HTMLDocument(parsing: Once(Data(page.utf8))).nodes("//[")
        }
    }

    private struct Growth: Error {}

    /// The test runs in its own process, where no other test allocates memory.
    @Test func abandonedDocumentsLeakNoMemory() async throws {
        await #expect(processExitsWith: .success) {
            try await XMLMemoryTests.abandon(rounds: 40)
            let before = try XMLMemoryTests.residentMemory()
            try await XMLMemoryTests.abandon(rounds: 200)
            // In KiB; each round allocates about 200.
            if try XMLMemoryTests.residentMemory() > before + 6000 { throw Growth() }
        }
    }
}

/// A sequence of one chunk.
private struct Once: AsyncSequence, AsyncIteratorProtocol {
    private var chunk: Data?

    init(_ chunk: Data) { self.chunk = chunk }

    func makeAsyncIterator() -> Once { self }

    mutating func next() async -> Data? {
        defer { chunk = nil }
        return chunk
    }
}
