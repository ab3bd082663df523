// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Testing

@testable import CurlewXML

/// Tests of HTML pages as trees.
@Suite(.timeLimit(.minutes(5)))
struct HTMLDocumentTests {
    private func page(_ text: String, limits: XMLLimits = XMLLimits()) throws -> HTMLDocument {
        try HTMLDocument(parsing: Data(text.utf8), limits: limits)
    }

    /// The body of a page as HTML text.
    private func body(_ text: String) throws -> String {
        try page(text).nodes("/html/body/node()").map(\.html).joined()
    }

    @Test(arguments: [
        ("<p>a<p>b", "<p>a</p><p>b</p>"),
        ("<ul><li>a<li>b</ul>", "<ul><li>a</li><li>b</li></ul>"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
        ("<p><b>x<i>y</b>z</i>", "<p><b>x<i>y</i></b>z</p>"),
        ("<div>a</span></div>", "<div>a</div>"),
        ("<br><hr/><img src=a>", "<br><hr><img src=\"a\">"),
        ("<P CLASS=a>x</p>", "<p class=\"a\">x</p>"),
        (
            "<a href=x/y?a=1&b=2 title='\"q\"' id = \"i\">t</a>",
            "<a href=\"x/y?a=1&amp;b=2\" title=\"&quot;q&quot;\" id=\"i\">t</a>"
        ),
        ("<input disabled value=''>", "<input disabled=\"disabled\" value=\"\">"),
        ("<p a=1 a=2>x", "<p a=\"1\">x</p>"),
        ("<script>if (a < b && c) { s = '<p>'; }</script>", "<script>if (a < b && c) { s = '<p>'; }</script>"),
        ("<div><style>p > b { }</style></div>", "<div><style>p > b { }</style></div>"),
        ("<p>1 < 2 & 3", "<p>1 &lt; 2 &amp; 3</p>"),
        ("<p><!-- a > b --><i></i>", "<p><!-- a > b --><i></i></p>"),
        ("<p>a</p></body></html><p>b</p>", "<p>a</p><p>b</p>"),
    ])
    func tagSoupBecomesATree(_ text: String, _ expected: String) throws {
        // A script right at the start belongs to the head.
        #expect(try body("<body>" + text) == expected)
        #expect(try body("<!DOCTYPE html>\n<title>t</title><body>" + text) == expected)
    }

    /// libxml2 would end the document at these, or drop the text.
    @Test(arguments: [
        ("</p><p>a", "<body><p>a</p></body>"), ("<!-- c --></div>\n</x><i>a</i>", "<body><i>a</i></body>"),
        ("<!DOCTYPE html></br>x", "<body><p>x</p></body>"), ("&#0;</p><b>a", "<body><b>a</b></body>"),
        ("</ ><b>a", "<body><p>&gt;<b>a</b></p></body>"), ("x</p>y", "<body><p>x</p>y</body>"),
        ("<html/><p>a", "<body><p>a</p></body>"), ("<body/><p>a</x>b", "<body><p>ab</p></body>"),
        ("<!DOCTYPE html>x", "<body><p>x</p></body>"), ("<!DOCTYPE html>", ""), ("", ""), (" \n", ""), ("<!--", ""),
        ("<p>a</html></body></p><p>b", "<body><p>a</p><p>b</p></body>"), ("<", "<body><p>&lt;</p></body>"),
        ("<p>a</body foo></HTML >b", "<body><p>ab</p></body>"), ("<p>a</bodyx>b", "<body><p>ab</p></body>"),
        ("<script>x</body></html></script><p>a", "<head><script>x</body></html></script></head><body><p>a</p></body>"),
        ("<script>x</scriptx></SCRIPT ><p>a", "<head><script>x</script></head><body><p>a</p></body>"),
    ])
    func contentAroundTheRootIsKept(_ text: String, _ content: String) throws {
        let page = try page(text)
        #expect(page.root.html == "<html>\(content)</html>" && page.root.name == XMLName("html"))
        #expect(page.node.kind == .document && page.root.parent == page.node && page.node.parent == nil)
    }

    @Test(arguments: [
        ("&lt;&amp;&quot;&apos;", "<&\"'"), ("&eacute;&euro;&nbsp;&copy;", "é€\u{A0}©"), ("&#233;&#xe9;&#XE9;", "ééé"),
        ("&#233 &#x20ac", "é €"), ("&unknown; & &", "&unknown; & &"), ("&#xD800;&#x110000;&#1;x", "x"),
        ("&ampx", "&ampx"),
    ])
    func referencesAreExpanded(_ text: String, _ expected: String) throws {
        #expect(try page("<p>\(text)</p>").root.text == expected)
    }

    @Test func xpathAndNavigationReadPages() throws {
        let page = try page(
            "<html lang=de><title>t</title><ul class=x><li>Eins<li id=b>Zwei</ul><o:p xml:lang=fr>y</o:p>")
        #expect(page.root["lang"] == "de" && page.root.elements.compactMap(\.name?.local) == ["head", "body"])
        #expect(try page.nodes("//ul[@class = 'x']/li").map(\.text) == ["Eins", "Zwei"])
        #expect(try page.string("//li[@id = 'b']/preceding-sibling::li") == "Eins")
        #expect(try page.evaluate("count(//li) = 2") == .boolean(true))
        #expect(try page.nodes("//*[@*[name() = 'xml:lang']]").first?.name == XMLName("p"))
        #expect(try page.nodes("id('b')").first?.text == "Zwei")
        #expect(throws: XMLError.self) { try page.nodes("//[") }
        #expect(page.description == "HTML document" && page.node.document.description == "XML document <html>")
        let scripts = try self.page("<script>a < b</script>").nodes("//script")
        #expect(scripts.first?.children.map(\.kind) == [.text])
    }

    @Test func textIsSerializedAsHTML() throws {
        let text = "<!-- c --><body a='\"<&\u{A0}'>a &amp; b\u{A0}<br><script>'</p>' < \"&\"</script><?pi x><p>é</p>"
        let page = try page(text)
        #expect(
            page.html == "<!DOCTYPE html><!-- c --><html><body a=\"&quot;&lt;&amp;&nbsp;\">a &amp; b&nbsp;<br>"
                + "<script>'</p>' < \"&\"</script><?pi x><p>é</p></body></html>")
        // The text results in the same tree.
        #expect(try self.page(page.html).html == page.html)
        #expect(try page.nodes("//@a | //text() | //comment()").map(\.html).contains("a=\"&quot;&lt;&amp;&nbsp;\""))
        #expect(try page.nodes("//script/text()").first?.html == "'</p>' < \"&\"")
        #expect(page.root.xml.contains("<br/>"))
    }

    @Test func titleIsCollapsed() throws {
        #expect(
            try page("<svg><title>s</title></svg><title> a\n\t b &amp; c </title><title>x</title>").title == "a b & c")
        #expect(try page("<p>x").title == nil)
        #expect(try page("<title></title>").title == "")
    }

    @Test func linksAreResolved() throws {
        let url = try #require(URL(string: "https://a.example/dir/page?q"))
        let links =
            "<a href=b>1</a><a name=x>2</a><map><area href=' /c\n#f '></map><a href='//d.example'>3</a>"
            + "<a href='mailto:x@y'>4</a><a href=''>5</a><a href='?r=1&amp;s=2'>6</a><a href='#é'>7</a>"
        #expect(
            try page(links).links(at: url).map(\.absoluteString) == [
                "https://a.example/dir/b", "https://a.example/c#f", "https://d.example", "mailto:x@y",
                "https://a.example/dir/page?q", "https://a.example/dir/page?r=1&s=2",
                "https://a.example/dir/page?q#%C3%A9",
            ])
        let based = try page("<base target=_top><base href=../e/><base href=/no/>" + links).links(at: url)
        #expect(based.first?.absoluteString == "https://a.example/e/b")
    }
}
