// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewXML

/// A generator of random well-formed documents in UTF-8.
private struct DocumentMaker {
    var chance: SeededChance

    private static let names = ["a", "b", "item", "ключ", "x-1", "_n"]
    private static let texts = [
        "", "x", " \n", "é€𝄞", "&lt;&amp;&gt;", "&#x20AC;&#233;", "a]]", "1\r\n2\r3", "'\"", "日本",
    ]
    private static let commentRanges = ["<!-- c' - > -->", "<?p a?b>?>", "<![CDATA[ <&>]] ]]>", "<![CDATA[x]]>"]

    private mutating func pick(_ list: [String]) -> String { list.randomElement(using: &chance) ?? "" }

    mutating func document() -> String {
        let start = pick(["", "<?xml version='1.0'?>\n", "<?xml version=\"1.0\" encoding='UTF-8' standalone='yes'?>"])
        let type = pick(["", "", "<!DOCTYPE a>", "<!DOCTYPE a [<!ATTLIST a d CDATA 'v&amp;w' k NMTOKEN #IMPLIED>]>"])
        return start + type + element(depth: 0) + pick(["", "\n", "<!--e-->\n<?end?>"])
    }

    private mutating func element(depth: Int) -> String {
        let prefix = pick(["", "", "p:", "q:"])
        let name = prefix + pick(Self.names)
        var tag = "<\(name) xmlns:p='urn:p' xmlns:q=\"urn:q\(depth)\"\(pick(["", " xmlns='urn:d'", " xmlns=''"]))"
        for attribute in Self.names.prefix(Int.random(in: 0...4, using: &chance)) {
            let value = pick(Self.texts).replacing("'", with: "&apos;")
            tag += " \(pick(["", "p:"]))\(attribute)=\(pick([" ", "\n", ""]))'\(value)'"
        }
        if depth == 4 || Int.random(in: 0..<5, using: &chance) == 0 { return tag + pick(["/>", " />"]) }
        var content = ""
        for _ in 0..<Int.random(in: 0...5, using: &chance) {
            content += pick(Self.texts)
            content += Bool.random(using: &chance) ? element(depth: depth + 1) : pick(Self.commentRanges)
        }
        return "\(tag)>\(content)</\(name)\(pick(["", " "]))>"
    }
}

/// An independent program that reads documents.
enum PeerProgram {
    static func isThere(_ name: String) -> Bool {
        let isDemanded = ProcessInfo.processInfo.environment["CURLEW_REQUIRE_PEERS"] == "1"
        return isDemanded || FileManager.default.isExecutableFile(atPath: path(name))
    }

    private static func path(_ name: String) -> String {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (["/usr/bin"] + folders).map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) } ?? "/usr/bin/\(name)"
    }

    /// Runs the program with some bytes as its input and returns its output.
    static func output(_ name: String, _ arguments: [String], input: Data) async throws -> Data {
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew-xml-peer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "input")
        try input.write(to: file)
        let process = Process()
        process.executableURL = URL(filePath: path(name))
        process.arguments = arguments
        process.standardInput = try FileHandle(forReadingFrom: file)
        process.standardError = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        return try await withCheckedThrowingContinuation { continuation in
            // Use a separate thread, because reading to the end blocks.
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        try process.run()
                        let data = pipe.fileHandleForReading.readDataToEndOfFile()
                        process.waitUntilExit()
                        return data
                    })
            }
        }
    }
}

extension XMLName {
    /// The name in the format of expat: URI, local name and prefix.
    fileprivate var parts: String { (namespace ?? "") + "|" + local + "|" + (prefix ?? "") }
}

/// Compares the events with those of Python's expat, which is independent of libxml2.
@Suite(.enabled(if: PeerProgram.isThere("python3"), "Scripts/setup-peers installs python3"), .timeLimit(.minutes(5)))
struct ExpatTests {
    /// Prints the events of each document of a JSON list.
    private static let script = """
        import json, sys, xml.parsers.expat as expat
        def name(text):
            parts = text.split('|')
            if len(parts) == 1: parts = ['', parts[0], '']
            if len(parts) == 2: parts = parts + ['']
            return '|'.join(parts)
        def events(text):
            out, depth, inside = [], [0], [False]
            def add(*event):
                if event[0] in ('text', 'cdata') and out and out[-1][0] == event[0] and not inside[0] == 'new':
                    out[-1][1] += event[1]
                else: out.append(list(event))
                if inside[0] == 'new': inside[0] = True
            p = expat.ParserCreate(namespace_separator='|')
            p.namespace_prefixes = True
            p.ordered_attributes = True
            def start(tag, attributes):
                pairs = list(zip(attributes[::2], attributes[1::2]))
                add('start', name(tag), *[name(k) + '=' + v for k, v in pairs])
            p.StartElementHandler = start
            p.EndElementHandler = lambda tag: add('end', name(tag))
            p.CharacterDataHandler = lambda text: add('cdata' if inside[0] else 'text', text)
            def section(flag):
                inside[0] = flag
                if not flag: out.append(['gap'])
            p.StartCdataSectionHandler = lambda: section('new')
            p.EndCdataSectionHandler = lambda: section(False)
            p.CommentHandler = lambda text: add('comment', text)
            p.ProcessingInstructionHandler = lambda target, data: add('pi', target, data)
            p.Parse(text.encode(), True)
            return [event for event in out if event[0] != 'gap']
        print(json.dumps([events(text) for text in json.load(sys.stdin)]))
        """

    private func ours(_ text: String, by size: Int) throws -> [[String]] {
        let reading = try Reading(Array(text.utf8), by: size)
        #expect(reading.error == nil, "\(text): \(reading.error?.description ?? "")")
        return reading.events.map { event in
            switch event {
            case .startElement(let tag):
                ["start", tag.name.parts] + tag.attributes.map { "\($0.name.parts)=\($0.value)" }
            case .endElement(let name): ["end", name.parts]
            case .text(let text): ["text", text]
            case .cdata(let text): ["cdata", text]
            case .comment(let text): ["comment", text]
            case .processingInstruction(let target, let content): ["pi", target, content]
            }
        }
    }

    @Test func expatReportsTheSameEvents() async throws {
        var maker = DocumentMaker(chance: SeededChance(42))
        let documents = (0..<120).map { _ in maker.document() }
        let input = try JSONEncoder().encode(documents)
        let output = try await PeerProgram.output("python3", ["-c", Self.script], input: input)
        let theirs = try JSONDecoder().decode([[[String]]].self, from: output)
        #expect(theirs.count == documents.count)
        for (text, events) in zip(documents, theirs) {
            for size in [Int.max, 5] { #expect(try ours(text, by: size) == events, "\(text)") }
        }
        print("peer-test: python3 expatReportsTheSameEvents")
    }
}

/// Compares the results of XPath expressions with those of xmllint.
@Suite(.enabled(if: PeerProgram.isThere("xmllint"), "Scripts/setup-peers installs xmllint"), .timeLimit(.minutes(5)))
struct XmllintTests {
    private static let text = """
        <shelf kind="x"><book id="1" price="3.5"><title>Eins</title></book><book id="2" price="4"><title>Zwei &amp; mehr</title>
        </book><!-- c --><box><book id="3" price="10"/></box></shelf>
        """

    @Test(arguments: [
        "count(//book)", "sum(//@price)", "string(//book[2]/title)", "//book[@price > 3.9]/@id = 3", "name(/*)",
        "concat(//book[last()]/@id, '-')", "normalize-space(/shelf)", "string-length(//title)",
        "boolean(//none)",
        "//book[1]/following-sibling::*[1]/@id + 1", "translate(//title, 'Eis', 'eIS')", "round(sum(//@price) div 2)",
        "count(//comment() | //text())", "string(//box/preceding::title[1])", "not(//book[@id = 9])", "1 div 0",
    ])
    func xmllintReturnsTheSameXPathResults(_ path: String) async throws {
        let output = try await PeerProgram.output("xmllint", ["--xpath", path, "-"], input: Data(Self.text.utf8))
        let theirs = try #require(String(data: output, encoding: .utf8))
        let ours = try XMLDocument(parsing: Data(Self.text.utf8)).string(path)
        #expect(ours == theirs.trimmingCharacters(in: .newlines))
        print("peer-test: xmllint xmllintReturnsTheSameXPathResults")
    }
}
