// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Content codings: the decoded body does not depend on the chunks, and no step returns more bytes than its limit.
///
/// The first byte selects the codings, the second the size of the chunks; the rest is the body.
func examine(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let names = stacks[Int(input[0]) % stacks.count]
    let body = Array(input[2...])
    let whole = decoded(body, names, by: body.count)
    let parts = decoded(body, names, by: Int(input[1]) + 1)
    // The first error of a body with two errors may depend on the number of bytes that a library gets at once.
    let isWhole = (whole.ending == "ended", parts.ending == "ended")
    demand(isWhole.0 == isWhole.1, "\(names): as a whole it \(whole.ending), in chunks it \(parts.ending)")
    if whole.ending == "ended" { demand(whole.bytes == parts.bytes, "\(names): the bytes depend on the chunks") }
    if input[0] & 0x80 != 0 { examineRoundTrip(body, step: Int(input[1]) + 1) }
}

private let stacks: [[String]] = [
    ["gzip"], ["deflate"], ["br"], ["zstd"], ["gzip", "gzip"], ["br", "gzip"], ["deflate", "zstd"],
    ["zstd", "br"],
]

/// The number of decoded bytes at which the target stops, because other tests cover decompression bombs.
private let most = 1 << 20

private func decoded(_ body: [UInt8], _ names: [String], by size: Int) -> (bytes: [UInt8], ending: String) {
    var bytes: [UInt8] = []
    do throws(NetworkError) {
        let decoder = try ContentCodings.system.decoder(for: names)
        var offset = 0
        while offset < body.count {
            let end = min(body.count, offset + max(1, size))
            decoder.feed(ByteChunk(body[offset..<end]))
            offset = end
            if try drain(decoder, into: &bytes) { return (bytes, "continued") }
            demand(decoder.consumed <= decoder.fed, "the decoder consumed more bytes than it got")
        }
        try decoder.finish()
        demand(decoder.produced == Int64(bytes.count), "the count of produced bytes is wrong")
        return (bytes, "ended")
    } catch {
        demand(error.phase == .decoding, "the phase is \(error.phase)")
        return (bytes, "failed: \(error.kind)")
    }
}

/// Appends the decoded bytes; returns true if there are more than `most`.
private func drain(_ decoder: ContentDecoder, into bytes: inout [UInt8]) throws(NetworkError) -> Bool {
    while true {
        switch try decoder.step() {
        case .starved: return false
        case .working: continue
        case .bytes(let chunk):
            demand(chunk.count <= 64 << 10 && !chunk.isEmpty, "a step returns \(chunk.count) bytes")
            bytes += chunk
            if bytes.count > most { return true }
        }
    }
}

/// Decoding the output of our own compressor returns the original bytes.
private func examineRoundTrip(_ body: [UInt8], step: Int) {
    guard let zlib = ZlibLibrary.system, let deflater = try? Deflater(zlib) else { return }
    var packed: [UInt8] = []
    var offset = 0
    while offset < body.count {
        let end = min(body.count, offset + step)
        packed += (try? deflater.transform(Array(body[offset..<end]), flush: end % 2 == 0)) ?? []
        offset = end
    }
    packed += (try? deflater.finish()) ?? []
    let read = decoded(packed, ["gzip"], by: step)
    demand(
        read.ending == "ended" && read.bytes == body, "\(body.count) bytes became \(read.bytes.count): \(read.ending)")
}
