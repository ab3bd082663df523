// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Content codings: a body means the same however it is cut into chunks, and no step gives more than it may.
///
/// The first byte chooses the codings, the second how the body is cut, the rest is the body.
func examine(_ input: [UInt8]) {
    guard input.count >= 2 else { return }
    let names = stacks[Int(input[0]) % stacks.count]
    let body = Array(input[2...])
    let whole = decoded(body, names, by: body.count)
    let parts = decoded(body, names, by: Int(input[1]) + 1)
    // Which of two things is wrong with a body may depend on how much of it a library sees at once.
    let isWhole = (whole.ending == "ended", parts.ending == "ended")
    demand(isWhole.0 == isWhole.1, "\(names): whole it \(whole.ending), in parts it \(parts.ending)")
    if whole.ending == "ended" { demand(whole.bytes == parts.bytes, "\(names): whole and in parts are not the same") }
    if input[0] & 0x80 != 0 { examineRoundTrip(body, step: Int(input[1]) + 1) }
}

private let stacks: [[String]] = [
    ["gzip"], ["deflate"], ["br"], ["zstd"], ["gzip", "gzip"], ["br", "gzip"], ["deflate", "zstd"],
    ["zstd", "br"],
]

/// Where bombs are left to others.
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
            if try drain(decoder, into: &bytes) { return (bytes, "went on") }
            demand(decoder.consumed <= decoder.fed, "more was used than given")
        }
        try decoder.finish()
        demand(decoder.produced == Int64(bytes.count), "bytes are counted wrongly")
        return (bytes, "ended")
    } catch {
        demand(error.phase == .decoding, "the phase is \(error.phase)")
        return (bytes, "failed: \(error.kind)")
    }
}

/// True when there is more than anybody wants.
private func drain(_ decoder: ContentDecoder, into bytes: inout [UInt8]) throws(NetworkError) -> Bool {
    while true {
        switch try decoder.step() {
        case .starved: return false
        case .working: continue
        case .bytes(let chunk):
            demand(chunk.count <= 64 << 10 && !chunk.isEmpty, "a step gives \(chunk.count) bytes")
            bytes += chunk
            if bytes.count > most { return true }
        }
    }
}

/// What our own compressor writes is read as it was.
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
