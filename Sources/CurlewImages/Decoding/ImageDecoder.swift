// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// An image that tasks decode while its bytes arrive, on the threads of the decoder.
///
/// The parts of one image are decoded one after the other, those of several images at the same time.
final class ImageDecoder: Sendable {
    private let decoding: Lock<ImageDecoding>

    init(_ options: DecodedImage.Options) { decoding = Lock(ImageDecoding(options)) }

    deinit {
        let decoding = decoding
        guard decoding.withLock({ $0.isDecoding }) else { return }
        // gdk-pixbuf decodes the rest of its bytes when an unfinished decoder is closed.
        _ = DiskThread.decoding.run(in: "discard") { decoding.withLock { $0.discard() } }
    }

    /// Decodes the next bytes.
    func append(_ chunk: ByteChunk) async throws(ImageError) {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in
                try chunk.withSpan { span throws(ImageError) in try decoding.append(span) }
            }
        }
    }

    /// Decodes the next bytes.
    func append(_ data: Data) async throws(ImageError) {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in try decoding.append(data.span) }
        }
    }

    /// Decodes a whole file in memory.
    func decode(_ data: Data) async throws(ImageError) -> DecodedImage {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in
                try decoding.append(data.span)
                return try decoding.finish()
            }
        }
    }

    /// Decodes a whole file on the disk.
    func decode(file: String) async throws(ImageError) -> DecodedImage {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in
                try readFile(file) { part throws(ImageError) in try decoding.append(part) }
                return try decoding.finish()
            }
        }
    }

    /// Returns the pixels that are decoded so far; nil before the first ones.
    func preview() async throws(ImageError) -> DecodedImage? {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in try decoding.preview() }
        }
    }

    /// Ends the file and returns its image.
    func finish() async throws(ImageError) -> DecodedImage {
        try await onDecoderThread { () throws(ImageError) in
            try self.decoding.withLock { decoding throws(ImageError) in try decoding.finish() }
        }
    }
}

/// Runs work on a thread of the decoder and returns its result.
func onDecoderThread<Value: Sendable>(
    _ work: @escaping @Sendable () throws(ImageError) -> Value
) async throws(ImageError) -> Value {
    let result = await DiskThread.decoding.value(in: "\(nextKey())") {
        Result { () throws(ImageError) in try work() }
    }
    guard let result else {
        throw ImageError(
            .outOfMemory, "The system cannot start a thread for the decoder.", hint: "Check the limits of the process.")
    }
    return try result.get()
}

private let lastKey = Lock(UInt64(0))

private func nextKey() -> UInt64 {
    lastKey.withLock { key in
        key += 1
        return key
    }
}
