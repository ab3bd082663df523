// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

@testable import CurlewXML

/// The result of parsing a document: its events, and the error after them, if any.
struct Reading: Equatable, Sendable {
    var events: [XMLEvent] = []
    var error: XMLError?

    /// Reads a document in chunks of `size` bytes.
    init(_ bytes: [UInt8], by size: Int, charset: String? = nil, limits: XMLLimits = XMLLimits()) throws {
        let cuts = Array(stride(from: size, to: bytes.count, by: size))
        try self.init(bytes, cutAt: cuts, charset: charset, limits: limits)
    }

    /// Reads a document in chunks that end at `cuts`.
    init(_ bytes: [UInt8], cutAt cuts: [Int], charset: String? = nil, limits: XMLLimits = XMLLimits()) throws {
        let parser = try XMLEventParser(charset: charset, limits: limits)
        for (start, end) in zip([0] + cuts, cuts + [bytes.count]) {
            take(parser.parse(bytes[start..<end]))
        }
        take(parser.parse([UInt8]?.none))
    }

    /// Parses a text as a whole.
    init(_ text: String, limits: XMLLimits = XMLLimits()) throws {
        try self.init(Array(text.utf8), by: .max, limits: limits)
    }

    private mutating func take(_ step: (events: [XMLEvent], failure: XMLError?)) {
        events += step.events
        error = step.failure
    }

    /// The text and the CDATA sections, joined in order.
    var text: String {
        events.reduce(into: "") { text, event in
            switch event {
            case .text(let piece), .cdata(let piece): text += piece
            default: break
            }
        }
    }

    /// The start tags.
    var tags: [XMLStartTag] {
        events.compactMap { event in
            guard case .startElement(let tag) = event else { return nil }
            return tag
        }
    }
}

/// Sample documents with all kinds of markup, well-formed and malformed.
enum Scene {
    static let wellFormed = [
        "<a/>",
        "\u{FEFF}<?xml version='1.0' encoding=\"utf-8\" standalone='yes'?>\r\n<a>\r\rx\r\n</a>\r",
        "<?xml version=\"1.0\"?><!-- it's > \"so\" --><?go a='>'?><a b=\"1 > 0\" c='\"'>x<b/>y</a><!--<' end-->",
        "<x:a xmlns:x='urn:x' xmlns='urn:d' x:b='&lt;&#38;&#x20AC;'><b xmlns=''/>&amp;&#65;&gt;</x:a>",
        "<a><![CDATA[]]><![CDATA[x]]><![CDATA[ <' ]] > ]]]]><![CDATA[>]]>y</a>",
        "<!DOCTYPE a [<!-- ' ]> --><?p ' ]>?><!ENTITY e \"]>'\"><!ATTLIST a b CDATA 'd' c NMTOKEN #IMPLIED>]><a c='  x '/>",
        "<!DOCTYPE a PUBLIC \"-//X//Y\" 'no>where.dtd'><a>ключ €𝄞</a>",
        "<a>]]<b/>]</a>",
        "<ключ 名='值'>日本語</ключ>",
    ]

    static let malformed = [
        "", " ", "x", "<", "<a", "<a>", "</a>", "<a></b>", "<a><b></a>", "<a/><b/>", "<a/>x", "x<a/>", "<a b/>",
        "<a b=c/>",
        "<a b='1' b='2'/>", "<a b='<'/>", "<a b='x", "<a>&e;</a>", "<a>&</a>", "<a>& b</a>", "<a>&#0;</a>",
        "<a>&#x110000;</a>",
        "<a b='&e;'/>", "<a>]]></a>", "<a><![CDATA[x</a>", "<a><![CDAT[x]]></a>", "<a><!-- -- --></a>", "<a><!x></a>",
        "<a><?p",
        "<a><?xml version='1.0'?></a>", " <?xml version='1.0'?><a/>", "<x:a/>", "<a x:b='1'/>", "<a xmlns:x=''/>", "<>",
        "<a><<b/></a>",
        "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "<!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>",
        "<!DOCTYPE a [<!ENTITY % p 'x'>%p;]><a>&e;</a>",
        "<!DOCTYPE a [", "<!DOCTYPE a []", "<!DOCTYPE a [<!ELEMENT", "<!DOCTYPE a <", "<a>\u{1}</a>", "<a>\u{FFFF}</a>",
        "<a>\u{0}</a>",
        "<a b='\u{1}'/>", "<?xml version='1.0' encoding='?'?><a/>", "<?xml?><a/>", "<a:b:c xmlns:a='x'/>", "<1/>",
        "<a>&a;&lt</a>",
    ]
}
