// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Testing

@testable import CurlewXML

/// Tests of the search for a page's own encoding (HTML §13.2.3.2).
@Suite(.timeLimit(.minutes(5)))
struct MetaPrescanTests {
    private static let koi = "KOI8-R"

    @Test(arguments: [
        // The forms of the element.
        ("<meta charset=koi8-r>", koi), ("<meta charset=\"koi8-r\">", koi), ("<meta charset='koi8-r'>", koi),
        ("<META CHARSET = KOI8-R >", koi), ("<meta/charset=koi8-r>", koi), ("<meta\tcharset\n=\r' koi8-r '/>", koi),
        ("<meta charset=koi8-r/>", nil), ("<meta charset=koi8-r />", koi), ("<meta a b=c charset=koi8-r>", koi),
        ("<meta charset=koi8-r charset=utf-8>", koi), ("<metacharset=koi8-r>", nil), ("<meta-x charset=koi8-r>", nil),
        ("<meta a='>' charset=koi8-r>", koi), ("<meta a=\"'\" charset=koi8-r>", koi), ("<meta =charset=koi8-r>", nil),
        ("<html><head><title>x</title><meta charset=koi8-r>", koi), ("x<meta charset=koi8-r>", koi),
        // The end of the bytes.
        ("<meta charset=koi8-r", nil), ("<meta charset='koi8-r", nil), ("<meta", nil), ("<", nil), ("</", nil),
        ("", nil),
        // A pragma needs both attributes.
        ("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>", koi),
        ("<meta content='text/html; charset=koi8-r' http-equiv='content-type'>", koi),
        ("<meta content='text/html; charset=koi8-r'>", nil), ("<meta http-equiv=content-type charset=koi8-r>", koi),
        ("<meta http-equiv=refresh content='charset=koi8-r'>", nil),
        ("<meta http-equiv=content-type content='charset=\"koi8-r\"'>", koi),
        ("<meta http-equiv=content-type content=\"charset='koi8-r'x\">", koi),
        ("<meta http-equiv=content-type content=\"charset='koi8-r\">", nil),
        ("<meta http-equiv=content-type content='charset charset = koi8-r;x'>", koi),
        ("<meta http-equiv=content-type content='xcharset=koi8-r x'>", koi),
        ("<meta http-equiv=content-type content='charset'>", nil),
        ("<meta http-equiv=content-type content='charset='>", nil),
        ("<meta http-equiv=content-type content='charset=utf-8' charset=koi8-r>", koi),
        // Unknown names and names with other meanings.
        ("<meta charset=klingon>", nil), ("<meta charset=klingon><meta charset=koi8-r>", koi), ("<meta charset>", nil),
        ("<meta charset=''>", nil), ("<meta charset=replacement>", nil),
        ("<meta charset=x-user-defined>", "windows-1252"),
        ("<meta charset=utf-16>", "UTF-8"), ("<meta charset=UTF-16BE>", "UTF-8"),
        ("<meta charset=latin1>", "windows-1252"),
        ("<meta http-equiv=content-type content='charset=utf-16le'>", "UTF-8"), ("<meta charset=utf8>", "UTF-8"),
        // Comments and other markup.
        ("<!-- <meta charset=utf-8> --><meta charset=koi8-r>", koi), ("<!--><meta charset=koi8-r>", koi),
        ("<!---><meta charset=koi8-r>", koi), ("<!-- <meta charset=koi8-r>", nil),
        ("<!-- --!><meta charset=koi8-r>", nil),
        ("<!x <meta charset=koi8-r>", nil), ("<!x ><meta charset=koi8-r>", koi), ("<?x '><meta charset=koi8-r>", koi),
        ("</ <meta charset=utf-8><meta charset=koi8-r>", koi),
        ("<a b='<meta charset=utf-8>'><meta charset=koi8-r>", koi),
        ("<a b=<meta charset=utf-8><meta charset=koi8-r>", koi),
        ("</a b='><meta charset=utf-8>'><meta charset=koi8-r>", koi),
        ("<script><meta charset=koi8-r></script>", koi), ("< meta charset=koi8-r>", nil),
        ("<<meta charset=koi8-r>", koi),
        // XML declarations.
        ("<?xml version='1.0' encoding='koi8-r'?><p>", koi), ("<?xml encoding = \"koi8-r\" ?>", koi),
        ("<?xml encoding='koi8-r'?><meta charset=utf-8>", "UTF-8"), ("<?xml encoding='utf-16'?>", "UTF-8"),
        (" <?xml encoding='koi8-r'?>", nil), ("<?xml encoding='koi8 r'?>", nil), ("<?xml encoding=koi8-r?>", nil),
        ("<?xml encoding='koi8-r", nil), ("<?xml?>", nil), ("<\0?\0x\0", "UTF-16LE"), ("\0<\0?\0x", "UTF-16BE"),
    ])
    func declarationsAreFound(_ page: String, _ name: String?) {
        #expect(MetaPrescan.encoding(of: Array(page.utf8))?.name == name)
    }

    @Test func onlyTheFirstBytesCount() {
        let meta = "<meta charset=koi8-r>"
        for (blanks, isFound) in [(1024 - meta.utf8.count, true), (1025 - meta.utf8.count, false), (2000, false)] {
            let page = String(repeating: " ", count: blanks) + meta
            #expect((MetaPrescan.encoding(of: Array(page.utf8)) != nil) == isFound)
        }
    }
}
