// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// XML: the events or the error of a document do not depend on the chunks, and the tree matches the events.
///
/// The first byte selects the size of the chunks and whether there is a charset; the rest is the document.
func examine(_ input: [UInt8]) {
    guard let first = input.first else { return }
    let bytes = Array(input.dropFirst())
    let charset = first & 0x80 == 0 ? nil : charsets[Int(first >> 4 & 7)]
    let whole = read(bytes, by: max(1, bytes.count), charset)
    let parts = read(bytes, by: Int(first & 0x0F) + 1, charset)
    demand(whole.events == parts.events, "whole \(whole.events), in parts \(parts.events)")
    demand(whole.error?.kind == parts.error?.kind, "whole \(whole.error as Any), in parts \(parts.error as Any)")
    examineTree(bytes, charset, whole)
}

private let charsets = ["utf-8", "utf-16", "iso-8859-1", "windows-1251", "shift_jis", "utf-32", "klingon", "us-ascii"]

private func read(_ bytes: [UInt8], by size: Int, _ charset: String?) -> (events: [XMLEvent], error: XMLError?) {
    guard let parser = try? XMLEventParser(charset: charset, limits: XMLLimits()) else { return ([], nil) }
    var events: [XMLEvent] = []
    var offset = 0
    while offset < bytes.count {
        let end = min(bytes.count, offset + size)
        events += parser.parse(bytes[offset..<end]).events
        offset = end
    }
    let last = parser.parse([UInt8]?.none)
    return (events + last.events, last.failure)
}

private func examineTree(_ bytes: [UInt8], _ charset: String?, _ reading: (events: [XMLEvent], error: XMLError?)) {
    do throws(XMLError) {
        let builder = try XMLDocumentBuilder(charset: charset, limits: XMLLimits())
        try builder.append(bytes)
        _ = try builder.tree()
        demand(reading.error == nil, "a malformed document has a tree: \(reading.error as Any)")
    } catch {
        demand(reading.error != nil, "a valid document has no tree: \(error)")
    }
}
