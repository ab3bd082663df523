// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A compression dictionary (RFC 9842): the bytes of a stored response, at a fixed address.
final class CompressionDictionary: @unchecked Sendable {
    // Safe because only the initializer writes the memory and the properties.

    /// The bytes; valid while the dictionary lives.
    let bytes: UnsafeRawBufferPointer
    /// The SHA-256 of the bytes, by which client and server name the dictionary.
    let digest: [UInt8]

    /// Copies the bytes of a dictionary; nil for empty data, or if SHA-256 is unavailable.
    init?(_ data: Data) {
        guard !data.isEmpty, let digest = MessageDigest(.sha256) else { return nil }
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: data.count, alignment: 16)
        data.withUnsafeBytes { memory.copyMemory(from: $0) }
        bytes = UnsafeRawBufferPointer(memory)
        digest.update(bytes)
        self.digest = digest.finish()
    }

    deinit { bytes.deallocate() }
}

/// The decoder of a body that was compressed with a dictionary: checks the header of the body, which names the
/// dictionary, and passes the rest to the decoder of the coding.
final class DictionaryDecoder: Codec {
    /// The size of a SHA-256 in bytes.
    private static let digestSize = 32

    /// The part of the header that was not received yet.
    private var header: ArraySlice<UInt8>
    private let decoder: any Codec

    /// - Parameters:
    ///   - magic: The bytes before the digest of the dictionary (RFC 9842 §4, §5).
    ///   - decoder: The decoder of the rest.
    init(_ magic: [UInt8], _ dictionary: CompressionDictionary, _ decoder: any Codec) {
        header = (magic + dictionary.digest)[...]
        self.decoder = decoder
    }

    var isComplete: Bool { header.isEmpty && decoder.isComplete }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        if header.isEmpty { return try decoder.step(input, output) }
        var step = CodecStep()
        while step.consumed < input.count, let expected = header.first {
            guard input[step.consumed] == expected else {
                let isDigest = header.count <= Self.digestSize
                throw .corrupt(
                    isDigest ? "it was not compressed with the dictionary of the request" : "its header is invalid")
            }
            header.removeFirst()
            step.consumed += 1
        }
        return step
    }
}
