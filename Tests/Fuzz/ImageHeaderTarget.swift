// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Headers of images: the header does not depend on the pieces of a file, a prefix has no wrong size, and a scanner
/// keeps a bounded number of bytes.
///
/// The last byte selects the pieces.
func examine(_ input: [UInt8]) {
    examineFile(input)
    // No random input has the right checksum.
    guard input.count >= 33, input.starts(with: [0x89, 0x50, 0x4E, 0x47]) else { return }
    var repaired = input
    let sum = PNGHeaderReader.checksum(of: input[12..<29])
    for index in 0..<4 { repaired[29 + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * index)) }
    if repaired != input { examineFile(repaired) }
}

/// The outcome of a scan.
private struct Outcome: Equatable {
    var header: ImageHeader?
    var kind: ImageError.Kind?
    var isComplete = false

    init(_ bytes: [UInt8], by size: Int, isWhole: Bool = false) {
        var scanner = ImageHeader.Scanner(maximumFrames: 100)
        do throws(ImageError) {
            for start in stride(from: 0, to: bytes.count, by: size) {
                try scanner.append(bytes[start..<min(start + size, bytes.count)])
                demand(scanner.keptBytes <= 2 * 65_536, "\(scanner.keptBytes) bytes are kept")
            }
            if isWhole { try scanner.finish() }
        } catch {
            kind = error.kind
            demand(scanner.isComplete && scanner.header == nil, "an error leaves a header")
        }
        (header, isComplete) = (scanner.header, scanner.isComplete)
    }
}

private func examineFile(_ input: [UInt8]) {
    let piece = Int(input.last ?? 0) + 1
    let whole = Outcome(input, by: max(1, input.count))
    for size in [1, piece] { demand(Outcome(input, by: size) == whole, "pieces of \(size) bytes change the header") }
    let end = Outcome(input, by: piece, isWhole: true)
    demand(end.isComplete && (end.header == nil) == (end.kind != nil), "a file has no result, or two")
    demand(whole.header != nil || whole.kind != .truncated, "the error comes before the end")
    if let header = whole.header { examine(header, end.header, input) }
    let read = try? ImageHeader(input)
    demand((read == nil) == (whole.header == nil), "the initializer differs from the scanner")
    let prefix = Outcome(Array(input.prefix(input.count * piece / 256)), by: piece)
    demand(prefix.kind == nil || whole.kind == prefix.kind, "a prefix has the error \(String(describing: prefix.kind))")
    if let header = prefix.header {
        demand(header.isSamePicture(as: whole.header), "a prefix has another size")
        if prefix.isComplete { demand(header == whole.header, "a complete header changes") }
    }
    // More than the scanner keeps.
    if input.count > 4096 { _ = Outcome((0..<20).flatMap { _ in input }, by: 4000 + piece) }
}

private func examine(_ header: ImageHeader, _ end: ImageHeader?, _ input: [UInt8]) {
    demand(min(header.width, header.height) > 0 && max(header.width, header.height) <= Int32.max, "the size is invalid")
    demand(1...16 ~= header.bitsPerChannel, "a channel has \(header.bitsPerChannel) bits")
    demand(header.count > 0, "an image has no frame")
    demand(header.isSamePicture(as: end) && header.count == end?.count, "the end changes the header")
    demand(!header.isAnimated || header.frames != .count(1), "one frame is animated")
    let upright = header.uprightSize
    demand(upright.width * upright.height == header.width * header.height, "the orientation changes the size")
    demand(ImageFormat(signature: input) == header.format, "the signature is that of another format")
}

extension ImageHeader {
    fileprivate var count: Int {
        switch frames {
        case .count(let count), .atLeast(let count): count
        }
    }

    fileprivate func isSamePicture(as other: ImageHeader?) -> Bool {
        other.map { ($0.format, $0.width, $0.height, $0.bitsPerChannel) == (format, width, height, bitsPerChannel) }
            ?? false
    }
}
