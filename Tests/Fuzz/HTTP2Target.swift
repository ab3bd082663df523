// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The HTTP/2 server of CurlewTesting: frames, blocks of fields, and whole connections.
///
/// The first byte selects the kind of the rest, the second a parameter of that kind.
func examine(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let rest = input[2...]
    switch input[0] & 3 {
    case 0: examineBlocks(rest, tableSize: Int(input[1]) * 32)
    case 1: examineFields(rest, tableSize: Int(input[1]) * 32)
    case 2: examineFrames(rest)
    default: examineConnection(Array(rest), step: Int(input[1]) + 1, hasPreface: input[0] & 4 == 0)
    }
}

// MARK: Blocks of fields

/// Decodes consecutive blocks, each after a byte with its length; encoding the decoded fields must be possible.
private func examineBlocks(_ input: ArraySlice<UInt8>, tableSize: Int) {
    var decoder = HPACKDecoder(tableSize: tableSize)
    var rest = input
    while let count = rest.popFirst() {
        let block = rest.prefix(Int(count))
        rest = rest.dropFirst(block.count)
        let fields = try? decoder.decode(block)
        demandBounds(decoder, tableSize)
        guard let fields else { break }
        demand(fields.count <= block.count, "\(block.count) bytes make \(fields.count) fields")
        demandRoundTrip(fields)
    }
    examineHuffman(input)
}

private func demandBounds(_ decoder: HPACKDecoder, _ limit: Int) {
    demand(decoder.tableSize <= limit, "the table has \(decoder.tableSize) bytes, \(limit) are allowed")
    let text = decoder.table.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    let isExact = !decoder.table.contains { ($0.name + $0.value).unicodeScalars.contains("\u{FFFD}") }
    // If bytes are not valid UTF-8, the text is longer than the bytes.
    demand(isExact ? decoder.tableSize == text : decoder.tableSize <= text, "the table's size is wrong")
    demand(decoder.tableSize >= 32 * decoder.table.count, "the table's size is too small")
}

private func demandRoundTrip(_ fields: [HPACK.Field]) {
    var decoder = HPACKDecoder()
    let again = try? decoder.decode(HPACK.encode(fields)[...])
    demand(again.map(bytes) == bytes(fields), "encoded and decoded it is \(again ?? [])")
    demand(decoder.table.isEmpty, "our encoder indexes")
}

private func bytes(_ fields: [HPACK.Field]) -> [[UInt8]] {
    fields.flatMap { [Array($0.name.utf8), Array($0.value.utf8)] }
}

/// Each string has exactly one compressed form.
private func examineHuffman(_ input: ArraySlice<UInt8>) {
    let packed = HuffmanCode.encode(input)
    demand((try? Huffman.decode(packed)) == Array(input), "decoding a compressed string returns another string")
    guard let text = try? Huffman.decode(input) else { return }
    demand(HuffmanCode.encode(text[...]) == Array(input), "two strings have one compressed form")
}

/// Decodes fields that an encoder with all features has written; the input selects the fields and the features.
private func examineFields(_ input: ArraySlice<UInt8>, tableSize: Int) {
    var decoder = HPACKDecoder(tableSize: tableSize)
    var encoder = IndexingEncoder(limit: tableSize)
    var block: [UInt8] = []
    var expected: [(name: [UInt8], value: [UInt8])] = []
    var rest = input
    while let order = rest.popFirst() {
        if order & 0xC0 == 0 || rest.isEmpty {
            demandDecoded(block, expected, &decoder)
            demand(decoder.tableSize == encoder.size, "\(decoder.tableSize) bytes of table, not \(encoder.size)")
            block = order & 1 == 0 ? [] : encoder.resize(to: Int(order >> 1) * tableSize / 31)
            expected = []
            continue
        }
        let size = rest.popFirst() ?? 0
        // Use few names, so that names repeat.
        let name = order & 0x20 == 0 ? Array("n\(size >> 6)".utf8) : Array(rest.prefix(Int(size >> 6)))
        if order & 0x20 != 0 { rest = rest.dropFirst(name.count) }
        let value = Array(repeatElement(rest.prefix(Int(size & 31)), count: Int(order & 3) * 8 + 1).joined())
        rest = rest.dropFirst(Int(size & 31))
        encoder.write(name, value, as: order, to: &block)
        expected.append((name, value))
    }
}

private func demandDecoded(
    _ block: [UInt8], _ expected: [(name: [UInt8], value: [UInt8])], _ decoder: inout HPACKDecoder
) {
    let fields = try? decoder.decode(block[...])
    let texts = expected.map {
        (name: String(decoding: $0.name, as: UTF8.self), value: String(decoding: $0.value, as: UTF8.self))
    }
    demand(fields.map(bytes) == bytes(texts), "\(texts) became \(fields.map { "\($0)" } ?? "nothing")")
}

// MARK: Frames

/// Decodes consecutive frames, like a connection.
private func examineFrames(_ input: ArraySlice<UInt8>) {
    var rest = input
    while let header = HTTP2Frame.Header(rest) {
        let before = rest
        guard let frame = HTTP2Frame.decode(from: &rest) else {
            demand(before.count < 9 + header.length && rest == before, "a complete frame is not decoded")
            return
        }
        var bytes = Array(before.prefix(9 + header.length))
        bytes[5] &= 0x7F
        demand(before.count - rest.count == bytes.count && frame.encoded == bytes, "encoded it is \(frame.encoded)")
        examineParts(frame)
        let received = ReceivedFrame(frame, connection: 1).frame
        demand(received.payload.count <= 256 && received.description == frame.description, "kept as \(received)")
    }
}

/// A frame made from the parsed values of another frame equals it, except for ignored values.
private func examineParts(_ frame: HTTP2Frame) {
    let payload = frame.payload
    switch frame.kind {
    case .settings:
        let whole = payload.count - payload.count % 6
        demand(HTTP2Frame.settings(frame.settings).payload == Array(payload[..<whole]), "settings \(frame.settings)")
    case .rstStream:
        guard let code = frame.errorCode else { return demand(payload.count < 4, "no code") }
        demand(HTTP2Frame.rstStream(1, code).payload == Array(payload[..<4]), "code \(code)")
    case .windowUpdate:
        guard let increment = frame.increment else { return demand(payload.count < 4, "no increment") }
        let again = HTTP2Frame.windowUpdate(1, by: increment)
        demand(again.payload == unreserved(payload[..<4]), "increment \(increment)")
    case .goAway:
        guard let last = frame.lastStream, let code = frame.errorCode else { return demand(payload.count < 8, "none") }
        let again = HTTP2Frame.goAway(lastStream: last, code, debug: Array(payload[8...]))
        demand(again.payload == unreserved(payload[...]), "last stream \(last), \(code)")
    default:
        examineContent(frame)
    }
}

private func unreserved(_ bytes: ArraySlice<UInt8>) -> [UInt8] { [bytes[bytes.startIndex] & 0x7F] + bytes.dropFirst() }

private func examineContent(_ frame: HTTP2Frame) {
    let isPadded = frame.flags.contains(.padded) && [.data, .headers, .pushPromise].contains(frame.kind)
    guard let content = frame.content else {
        demand(isPadded || frame.flags.contains(.priority), "a frame without padding has no content")
        return
    }
    demand(content.count <= frame.payload.count, "the content is longer than the payload")
    if frame.kind == .data {
        let again = HTTP2Frame.data(
            frame.stream, Array(content), endStream: frame.flags.contains(.endStream),
            padding: isPadded ? frame.payload[0] : nil)
        demand(again.content == content && again.payload.count == frame.payload.count, "DATA made again is \(again)")
    }
    var decoder = HPACKDecoder()
    guard frame.kind == .headers, let fields = try? decoder.decode(content) else { return }
    let again = HTTP2Frame.headers(1, fields).content
    demand(again == HPACK.encode(fields)[...], "HEADERS made again differ")
    demandRoundTrip(fields)
}
