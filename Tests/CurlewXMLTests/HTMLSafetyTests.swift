// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

@testable import CurlewXML

/// Tests of hostile pages: each results in a typed error or in a document, in time proportional to its length.
@Suite(.timeLimit(.minutes(5)))
struct HTMLSafetyTests {
    private static func outcome(_ bytes: [UInt8], limits: XMLLimits = XMLLimits()) -> Result<HTMLDocument, XMLError> {
        Result { () throws(XMLError) in try HTMLDocument(parsing: Data(bytes), limits: limits) }
    }

    private static func outcome(_ text: String, limits: XMLLimits = XMLLimits()) -> Result<HTMLDocument, XMLError> {
        outcome(Array(text.utf8), limits: limits)
    }

    private func isRefused(_ text: String, _ option: String, limits: XMLLimits = XMLLimits()) {
        let outcome = Self.outcome(text, limits: limits)
        guard case .failure(let error) = outcome else {
            Issue.record("\(text.prefix(40)) is accepted")
            return
        }
        #expect(error.kind == .limitExceeded && error.line != nil, "\(error)")
        #expect(error.hint?.contains("limits.\(option)") ?? option.isEmpty, "\(error)")
    }

    private func isRead(_ text: String, limits: XMLLimits = XMLLimits()) throws -> HTMLDocument {
        try Self.outcome(text, limits: limits).get()
    }

    private static func times(_ count: Int, _ text: String) -> String { String(repeating: text, count: count) }

    @Test(arguments: ["<div>", "<b>", "<table><tr><td>", "<a><ul><li>", "<object>", "<x:y>", "<svg>"])
    func nestedElementsAreLimited(_ tag: String) throws {
        isRefused(Self.times(300_000, tag), "depth")
        var limits = XMLLimits()
        limits.depth = 3
        #expect(try isRead("<p>x", limits: limits).html == "<!DOCTYPE html><html><body><p>x</p></body></html>")
        isRefused("<p><b>x", "depth", limits: limits)
    }

    /// The deepest tree is searched, copied and freed without deep recursion.
    @Test func deepestTreeIsUsable() throws {
        let page = try isRead("<html><body>" + Self.times(254, "<div>") + "x")
        #expect(try page.evaluate("count(//div)") == .number(254))
        #expect(page.root.text == "x" && page.html.hasSuffix(Self.times(254, "</div>") + "</body></html>"))
        #expect(page.root.xml.contains("<div>x</div>"))
        #expect(try page.nodes("(//div)[last()]/ancestor::*").count == 255)
        isRefused("<html><body>" + Self.times(255, "<div>") + "x", "depth")
    }

    @Test func attributesAreLimited() throws {
        func tag(_ count: Int, _ text: (Int) -> String) -> String { "<p " + (0..<count).map(text).joined() + ">" }
        let forms: [(Int) -> String] = [
            { "a\($0) " }, { "a\($0)=v " }, { "a\($0)='v'" }, { "a\($0) = \"v\"\n" }, { "a\($0)\t=\tv\t" },
        ]
        for form in forms {
            let page = try isRead(tag(256, form))
            #expect(try page.nodes("//p").first?.attributes.count == 256)
            isRefused(tag(257, form), "attributes")
            isRefused(tag(100_000, form), "attributes")
            isRefused(tag(100_000, form).replacing(">", with: ""), "attributes")
        }
        // libxml2 splits a long name into attributes.
        isRefused(tag(1, { _ in Self.times(30_000, "a") }), "attributes")
        // These hide a tag from a scanner that does not follow the rules of libxml2 exactly.
        let name = Self.times(100, "a")
        for start in [
            "<? ", "<?\"", "<?é ", "<p \(name)1='>", "<\(name)-='>", "<p a/='>", "<!- '", "</ '",
        ] {
            isRefused(start + tag(100_000) { "a\($0) " } + "'>", "attributes")
        }
        _ = try isRead("<?é <p a='>" + tag(100_000) { "a\($0) " } + "'>")
        // Words in scripts, comments and texts are no attributes.
        let words = Self.times(1000, "a ")
        _ = try isRead("<script>if (a <b \(words)) {}</script><!-- <b \(words) --><p>< b \(words)<p b='\(words)'>")
    }

    @Test func lengthsAreLimited() throws {
        var limits = XMLLimits()
        limits.markup = 20
        for text in [
            "<p b='0123456789012'>", "<p><!--01234567890123-->", "<?p 0123456789012345?>", "<!DOCTYPE html PUBLIC>",
            "</p 01234567890123456>", "<p b='012345678901234567890", "<!--01234567890123456789",
        ] {
            isRefused("<i>" + text, "markup", limits: limits)
        }
        _ = try isRead("<p>" + Self.times(100, "x") + "<script>" + Self.times(100, "x") + "</script>", limits: limits)
        isRefused("<p>" + Self.times(10_000_001, "x"), "")
        isRefused("<p>" + Self.times(5_000_001, "x&amp;"), "")
        isRefused("<script>" + Self.times(10_000_001, "x"), "")
        #expect(try isRead("<p>" + Self.times(9_900_000, "x")).root.text.utf8.count == 9_900_000)
        #expect(try isRead("<p>&" + Self.times(2_000_000, "x")).root.text.utf8.count == 2_000_001)
        limits = XMLLimits()
        limits.name = 4
        _ = try isRead("<abcd abcd=''>", limits: limits)
        isRefused("<abcde>", "name", limits: limits)
        isRefused("<a abcde>", "name", limits: limits)
        limits = XMLLimits()
        limits.nodes = 10
        isRefused(Self.times(10, "<p>"), "nodes", limits: limits)
        isRefused(Self.times(11, "<!---->"), "nodes", limits: limits)
        limits = XMLLimits()
        limits.document = 100_000
        _ = try isRead(Self.times(20_000, "<br> "), limits: limits)
        isRefused(Self.times(20_001, "<br> "), "document", limits: limits)
    }

    /// An encoding without boundaries between characters also has a limit.
    @Test(arguments: ["iso-2022-jp", "gb18030"])
    func unconvertedBytesAreLimited(_ charset: String) throws {
        var limits = XMLLimits()
        limits.document = 100_000
        let error = #expect(throws: XMLError.self) {
            try HTMLDocument(parsing: Data(repeating: 0x41, count: 1_000_000), charset: charset, limits: limits)
        }
        #expect(error?.kind == .limitExceeded)
    }

    @Test func distinctNamesAreLimited() throws {
        let names = (0..<200_000).map { "<n\($0)-\(Self.times(80, "x"))></n\($0)-\(Self.times(80, "x"))>" }.joined()
        isRefused(names, "")
    }

    /// Each text is long enough that quadratic time exceeds the limit of the suite.
    @Test(arguments: [
        "<", "</", "</x>", "</p>", "</", "<!", "<!--", "<!-- -->", "<!--->", "<?", "<?x>", "&", "&#", "&x", "&amp;",
        "<p>",
        "<br>", "<p id=a>", "<p title=it's>", "<p \">", "<!doctype '>", "<script>", "<script></script>", "<script></b>",
        "<style></", "<body>", "<html a=b>", "<head>", "</body>", "</html>", "<table> <!-- -->", "<p", "<p ", "<p a='",
        "<a href=''>x</a>", "<![CDATA[", "]]>", "<html/>", "<option>", "<li>", "\u{0}", "\u{1}", "\r", "<p\u{0}>", "é",
        "<p></div>", "<select><option></select>", "<frameset>", "<!-->", "--!>", "<dl><dt><dd></dl>",
    ])
    func repeatedMarkupTakesLinearTime(_ text: String) throws {
        let repeated = Self.times(800_000 / text.utf8.count, text)
        let clock = ContinuousClock()
        var results: [String] = []
        let time = clock.measure {
            switch Self.outcome(repeated) {
            case .success(let page): results = ["\(page.html.utf8.count) \(page.root.text.utf8.count)"]
            case .failure(let error): results = [error.kind.rawValue]
            }
        }
        #expect(time < .seconds(30), "\(text): \(time), \(results)")
        if case .failure(let error) = Self.outcome(repeated) { #expect(error.kind == .limitExceeded) }
    }

    /// libxml2 has read all complete markup, so a hostile page does not wait inside it without limits.
    @Test(arguments: [
        "<p title=it's>x", "<p \"><b '>", "<a b=c\"d'e>", "<a'b>", "<a b'c>", "<br><!doctype x \">", "<a b = 'c\"'d\">",
        "<a b='x>", "<p a=\u{1}\u{2}>", "<p></p '>", "<br><?x '>", "<br><!-- ' -->", "<a b=\"'\" c='\"'>", "<a '=\">",
    ])
    func strayQuotesDoNotStopTheParser(_ text: String) throws {
        let reader = try PageReader(charset: nil, limits: XMLLimits())
        for _ in 0..<5000 { try reader.append("\(text)</p></a>".utf8) }
        #expect(reader.unreadCount < 10)
        let page = HTMLDocument(try reader.finish())
        #expect(page.html.utf8.count > 5000)
    }

    @Test func linksOfManyElementsAreFound() throws {
        let url = try #require(URL(string: "https://a.example/"))
        let page = try isRead(Self.times(20_000, "<a href=x>y</a><area href=z>"))
        #expect(page.links(at: url).count == 40_000)
        #expect(try isRead(Self.times(50_000, "<title></title>")).title == "")
    }

    @Test func zeroBytesBecomeReplacementCharacters() throws {
        let page = try isRead("<p a='x\0y'>a\0b<!--\0--><script>\0</script><\0><b\0c>\0")
        #expect(page.root.text.contains("a\u{FFFD}b") && !page.html.contains("\0"))
        #expect(try page.string("//p/@a") == "x\u{FFFD}y")
        #expect(try Self.outcome([0]).get().root.text == "\u{FFFD}")
        #expect(try Self.outcome([UInt8](repeating: 0, count: 100_000)).get().root.text.utf8.count == 300_000)
    }

    @Test func entitiesAreNotDeclaredOrLoaded() throws {
        let file = FileManager.default.temporaryDirectory.appending(path: "curlew-html-\(UUID().uuidString)")
        try Data("the-secret".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        for text in [
            "<!DOCTYPE html [<!ENTITY e SYSTEM '\(file.path)'>]><p>&e;", "<!DOCTYPE html SYSTEM '\(file.path)'><p>&e;",
            "<!DOCTYPE a [<!ENTITY % p SYSTEM '\(file.path)'>%p;]><p>&p;", "<p><iframe src='\(file.path)'></iframe>",
            "<?xml-stylesheet href='\(file.path)'?><base href='file://\(file.path)'><link rel=stylesheet href='\(file.path)'>",
        ] {
            #expect(try !isRead(text).html.contains("the-secret"))
        }
    }
}
