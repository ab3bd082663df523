// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Multipart bodies: the parts do not depend on the chunks, are in the right order and contain only bytes of the input.
///
/// The first byte selects the size of the chunks, the second the length of the boundary, which follows; the rest is the
/// body.
func examine(_ input: [UInt8]) {
    guard input.count > 3 else { return }
    let length = min(Int(input[1] % 16) + 1, input.count - 2)
    let boundary = String(decoding: input[2..<2 + length].map { $0 % 0x5F + 0x20 }, as: UTF8.self)
    let body = Array(input[(2 + length)...])
    let whole = Reading(body, boundary, by: body.count + 1)
    let parts = Reading(body, boundary, by: Int(input[0]) + 1)
    demand(whole.failure == parts.failure, "whole \(whole.failure ?? "-"), in parts \(parts.failure ?? "-")")
    demand(whole.parts.elementsEqual(parts.parts) { $0 == $1 }, "chunks of \(Int(input[0]) + 1) bytes change the parts")
    demand(whole.count <= body.count, "the parts have more bytes than the body")
    examineRoundTrip(body, boundary, step: Int(input[0]) + 1)
}

/// Parsing the output of our own form returns the original parts, unless they contain the boundary.
private func examineRoundTrip(_ bytes: [UInt8], _ boundary: String, step: Int) {
    guard let own = MultipartForm.Boundary(boundary) else { return }
    let line = Array("\n--\(boundary)".utf8)
    guard ByteChunk([0x0A] + bytes).position(of: line, from: 0) == nil else { return }
    let form = MultipartForm([MultipartForm.Part("a", bytes: bytes), MultipartForm.Part("b", "")], boundary: own)
    guard let joined = form.layout.body.source as? JoinedBody, let body = joined.joinedBytes else { return }
    let reading = Reading(body, boundary, by: step)
    demand(reading.failure == nil && reading.parts.count == 2, "a form is \(reading.failure ?? "other parts")")
    demand(reading.parts[0].1 == bytes && reading.parts[1].1.isEmpty, "a part differs")
}

private struct Reading {
    var parts: [(HeaderFields, [UInt8])] = []
    var failure: String?
    var count = 0
    private var isOpen = false

    init(_ body: [UInt8], _ boundary: String, by size: Int) {
        var parser = MultipartParser(
            boundary: boundary, limits: MultipartElements.Limits(parts: 20, fields: .bytes(200), part: .bytes(0)))
        do throws(NetworkError) {
            var offset = 0
            while offset < body.count {
                let end = min(body.count, offset + size)
                try parser.read(ByteChunk(body[offset..<end])) { take($0) }
                offset = end
            }
            try parser.finish { take($0) }
            demand(!isOpen, "the last part has not ended")
        } catch {
            demand(error.kind == .decodingFailed, "the kind is \(error.kind)")
            failure = error.message
        }
    }

    private mutating func take(_ element: MultipartElements.Element) {
        switch element {
        case .part(let fields):
            demand(!isOpen, "a part began inside a part")
            parts.append((fields, []))
            isOpen = true
        case .bytes(let chunk):
            demand(isOpen && !chunk.isEmpty, "bytes outside a part")
            parts[parts.count - 1].1 += chunk
            count += chunk.count
        case .end:
            demand(isOpen, "a part ended twice")
            isOpen = false
        }
    }
}
