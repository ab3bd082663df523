// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// HTML: any bytes are a page or exceed a limit, and the tree depends neither on the chunks nor on the reader's steps.
///
/// The first byte selects the size of the steps and the charset; the rest is the page.
func examine(_ input: [UInt8]) {
    guard let first = input.first else { return }
    let bytes = Array(input.dropFirst())
    let charset = charsets[Int(first >> 4 & 7)]
    let whole = read(bytes, charset: charset, step: 16 << 10)
    if first & 0x80 != 0 {
        let parts = read(bytes, charset: "utf-8", step: Int(first & 0x0F) + 1)
        let same = charset == "utf-8" ? whole : read(bytes, charset: "utf-8", step: 16 << 10)
        demand(parts.html == same.html, "in steps \(parts.html ?? ""), whole \(same.html ?? "")")
        demand(parts.error?.kind == same.error?.kind, "in steps \(parts.error as Any), whole \(same.error as Any)")
    }
    demand(whole.error.map { $0.kind == .limitExceeded } ?? true, "an error: \(whole.error as Any)")
    guard let page = whole.page else { return }
    demand(page.root.kind == .element && page.root.name == XMLName("html"), "the root is \(page.root)")
    demand(whole.html?.utf8.contains(0) == false, "the text contains U+0000")
    _ = page.title
    _ = URL(string: "https://a.example/b").map { page.links(at: $0) }
    _ = (page.root.xml, page.root.text, MetaPrescan.encoding(of: bytes))
    demand((try? page.nodes("//node()|//@*")) != nil, "XPath fails")
}

private let charsets = ["utf-8", nil, "utf-16", "windows-1252", "shift_jis", "gb18030", "iso-2022-jp", "klingon"]

private func read(
    _ bytes: [UInt8], charset: String?, step: Int
) -> (page: HTMLDocument?, html: String?, error: XMLError?) {
    do throws(XMLError) {
        let reader = try PageReader(charset: charset, limits: XMLLimits(), step: step)
        for byte in bytes {
            try reader.append(CollectionOfOne(byte))
            demand(reader.unreadCount < 10, "libxml2 keeps \(reader.unreadCount) bytes")
        }
        let page = HTMLDocument(try reader.finish())
        return (page, page.html, nil)
    } catch {
        return (nil, nil, error)
    }
}
