// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// JSON text sequences and NDJSON: the values do not depend on the chunks, and every value occurs in the input.
///
/// The first byte selects the position of the cut in the rest.
func examine(_ input: [UInt8]) {
    let cut = min(input.first.map(Int.init) ?? 0, max(0, input.count - 1))
    let bytes = Array(input.dropFirst())
    let pieces = [Array(bytes[..<cut]), Array(bytes[cut...])]
    examineTexts(bytes, pieces)
    let strict = values(Streams.JSONSequence(JSONValue.self, limit: 256), [bytes])
    let lenient = values(Streams.JSONSequence(JSONValue.self, malformed: .skip, limit: 256), [bytes])
    demand(values(Streams.JSONSequence(JSONValue.self, limit: 256), pieces) == strict, "values change with the cut")
    demand(lenient.values.starts(with: strict.values), "skipping errors yields fewer values")
    if strict.failure == nil { demand(lenient == strict, "skipping errors yields other values") }
    let lines = values(Streams.NDJSON(JSONValue.self, limit: 256), [bytes])
    demand(values(Streams.NDJSON(JSONValue.self, limit: 256), pieces) == lines, "lines change with the cut")
    examineAgain(lenient.values)
}

private struct Reading: Equatable {
    var values: [JSONValue] = []
    var failure: String?
}

private func values<S: StreamSerializer>(_ serializer: S, _ pieces: [[UInt8]]) -> Reading where S.Element == JSONValue {
    var reading = Reading()
    do {
        var state = try serializer.begin(ResponseHead(status: .ok))
        for piece in pieces { try serializer.decode(ByteChunk(piece), &state, into: &reading.values) }
        try serializer.decode(nil, &state, into: &reading.values)
    } catch {
        reading.failure = (error as? NetworkError)?.message ?? "\(error)"
    }
    return reading
}

private struct Text: Equatable {
    var bytes: [UInt8]
    var fault: TextSequenceSplitter.Fault?
}

private func texts(_ pieces: [[UInt8]]) -> [Text]? {
    var splitter = TextSequenceSplitter(limit: 256)
    var texts: [Text] = []
    let take: TextSequenceSplitter.Handler = { text, number, fault in
        var bytes: [UInt8] = []
        for index in text.indices { bytes.append(text[index]) }
        demand(number == texts.count + 1, "text \(number) comes after \(texts.count)")
        texts.append(Text(bytes: bytes, fault: fault))
    }
    do {
        for piece in pieces { try splitter.split(piece.span, take) }
        try splitter.end(take)
    } catch {
        return nil
    }
    return texts
}

private func examineTexts(_ bytes: [UInt8], _ pieces: [[UInt8]]) {
    let whole = texts([bytes])
    demand(texts(pieces) == whole && texts(bytes.map { [$0] }) == whole, "texts change with the cut")
    for text in whole ?? [] {
        demand(!text.bytes.isEmpty && text.bytes.count <= 256, "a text has \(text.bytes.count) bytes")
        demand(!text.bytes.contains(0x1E), "a text has an RS")
        demand(!text.bytes[0].isBlank, "a text begins with white space")
    }
}

/// Encoding and decoding values returns equal values.
private func examineAgain(_ values: [JSONValue]) {
    guard let bytes = try? values.enumerated().flatMap({ try JSON().record($1, $0) }) else { return }
    let serializer = Streams.JSONSequence(JSONValue.self)
    var state = serializer.begin(ResponseHead(status: .ok))
    let again = try? serializer.decode(ByteChunk(bytes), &state)
    demand(again == values, "encoding and decoding changes the values")
}
