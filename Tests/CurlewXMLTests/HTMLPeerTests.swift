// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewXML

/// A generator of random pages with mistakes.
///
/// The pages have no document type and no `</body>` in the middle, no end tag at the start and no `<html/>`: for these,
/// ``PageScanner`` keeps to the HTML standard where libxml2 does not.
struct TagSoupMaker {
    var chance: SeededChance

    private static let names = [
        "p", "div", "b", "i", "a", "ul", "li", "table", "tr", "td", "tbody", "h1", "span", "form", "dl", "dt", "dd",
        "select", "option", "textarea", "title", "head", "body", "html", "meta", "link", "br", "img", "hr", "input",
        "o:p", "x-y", "P", "Font", "center", "button", "object", "noscript", "iframe", "nav",
    ]
    private static let attributes = [
        "", " ", " a=1", " b='x y'", " c=\"<>\"", " d", " e = 'q\"'", " a=2", " href=/x?a=1&b=2&copy;", " F=é€",
        " xml:lang=de", " g='&lt;&#65;&#x42;&eacute;'", " disabled", " =x", " \"", " h=a/b", " '", " i=\"x\"j=y",
    ]
    private static let texts = [
        "x", " ", "\n\n", "a & b", "&amp;", "&eacute;", "&#233;", "&#x20AC;", "&nbsp", "&unknown;", "&#65", "&",
        "1 < 2",
        "é€𝄞", "日本語", "<", "</", "</ x>", "<>", "< p>", "]]>", "\u{A0}", "&lt;p&gt;", "&#0;", "&#x110000;", "\u{1}",
    ]
    private static let others = [
        "<!-- c > -->", "<!---->", "<!-- a --!>", "<?php echo 1 ?>",
        "<!x>", "<![CDATA[x]]>", "<script>if (a < b) { '</b>' }</script>", "<SCRIPT src=a></script >",
        "<style>p > b {}</style>", "<script/>", "<div/>", "<p a=b/>", "<!--[if IE]> x <![endif]-->",
    ]

    private mutating func pick(_ list: [String]) -> String { list.randomElement(using: &chance) ?? "" }

    mutating func page(_ tokens: Int) -> String {
        (0..<tokens).reduce(into: pick(["<p>", "<!DOCTYPE html>\n<title>", "<!-- c --><html><head>", "x"])) { text, _ in
            switch Int.random(in: 0..<10, using: &chance) {
            case 0..<4:
                let attributes = (0..<Int.random(in: 0..<3, using: &chance)).map { _ in pick(Self.attributes) }.joined()
                text += "<\(pick(Self.names))\(attributes)>"
            case 4..<6: text += "</\(pick(Self.names.filter { $0 != "body" && $0 != "html" }))\(pick(["", " ", " x"]))>"
            case 6..<9: text += pick(Self.texts)
            default: text += pick(Self.others)
            }
        }
    }
}

private let isLXMLThere =
    ProcessInfo.processInfo.environment["CURLEW_REQUIRE_PEERS"] == "1"
    || FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/lxml")

/// Compares trees with those of lxml, which calls libxml2's parser for whole documents.
@Suite(.enabled(if: isLXMLThere, "Scripts/setup-peers installs lxml"), .timeLimit(.minutes(5)))
struct HTMLPeerTests {
    /// Prints the elements, attributes and texts of each page of a JSON list.
    private static let script = """
        import json, sys
        from lxml import etree
        def outline(text):
            out = []
            def add(kind, *parts): out.append([kind] + [part or '' for part in parts])
            def walk(node):
                if node.tag is etree.Comment: add('comment', node.text)
                elif node.tag is etree.ProcessingInstruction: add('pi', node.target, node.text)
                else:
                    add('start', node.tag, *[k + '=' + v for k, v in node.attrib.items()])
                    if node.text: add('text', node.text)
                    for child in node:
                        walk(child)
                        if child.tail: add('text', child.tail)
                    add('end', node.tag)
            sys.setrecursionlimit(5000)
            root = etree.fromstring(text.encode(), etree.HTMLParser(encoding='utf-8'))
            walk(root)
            return out
        print(json.dumps([outline(text) for text in json.load(sys.stdin)]))
        """

    private func outline(_ node: XMLNode, _ result: inout [[String]]) {
        let name = node.name?.local ?? ""
        switch node.kind {
        case .comment: result.append(["comment", node.text])
        case .processingInstruction: result.append(["pi", name, node.text])
        case .element:
            result.append(["start", name] + node.attributes.map { "\($0.name.local)=\($0.value)" })
            for child in node.children { outline(child, &result) }
            result.append(["end", name])
        default: result.append(["text", node.text])
        }
    }

    @Test func lxmlBuildsTheSameTrees() async throws {
        var maker = TagSoupMaker(chance: SeededChance(7))
        // The long page has a script or a tag at each boundary between two steps of the reader.
        let flat = (0..<4000).map { "<p a='\($0)>'>é&eacute;<script>a</b>\($0)</script><!-- \($0) -->\n" }.joined()
        let pages = (0..<400).map { maker.page(3 + $0 / 4) } + ["<p>" + flat]
        let output = try await PeerProgram.output(
            "python3", ["-c", Self.script], input: try JSONEncoder().encode(pages))
        let theirs = try JSONDecoder().decode([[[String]]].self, from: output)
        #expect(theirs.count == pages.count)
        for (text, expected) in zip(pages, theirs) {
            var ours: [[String]] = []
            outline(try HTMLDocument(parsing: Data(text.utf8)).root, &ours)
            let place = zip(ours, expected).enumerated().first { $1.0 != $1.1 }?.offset ?? 0
            #expect(
                ours == expected,
                "\(text.prefix(2000))\n\(place) \(ours.dropFirst(place).prefix(3)) \(expected.dropFirst(place).prefix(3))"
            )
        }
        print("peer-test: lxml lxmlBuildsTheSameTrees")
    }
}
