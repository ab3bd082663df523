// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The functions of brotli's decoder, by its stable C interface.
struct BrotliLibrary: Sendable {
    static let soname = "libbrotlidec.so.1"

    fileprivate typealias Create =
        @convention(c) @Sendable (
            UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?
        ) -> OpaquePointer?
    fileprivate typealias Destroy = @convention(c) @Sendable (OpaquePointer?) -> Void
    fileprivate typealias Decompress =
        @convention(c) @Sendable (
            OpaquePointer, UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafePointer<UInt8>?>,
            UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>?
        ) -> CInt
    fileprivate typealias ErrorCode = @convention(c) @Sendable (OpaquePointer) -> CInt
    fileprivate typealias ErrorText = @convention(c) @Sendable (CInt) -> UnsafePointer<CChar>?

    fileprivate let create: Create
    fileprivate let destroy: Destroy
    fileprivate let decompress: Decompress
    fileprivate let errorCode: ErrorCode
    fileprivate let errorText: ErrorText

    /// The brotli of this machine, opened once; nil when it is not installed.
    static let system = BrotliLibrary(library: soname)

    /// Nil when the library or one of its functions is missing.
    init?(library: String) {
        guard let symbols = LibrarySymbols(library),
            let create: Create = symbols.function("BrotliDecoderCreateInstance"),
            let destroy: Destroy = symbols.function("BrotliDecoderDestroyInstance"),
            let decompress: Decompress = symbols.function("BrotliDecoderDecompressStream"),
            let errorCode: ErrorCode = symbols.function("BrotliDecoderGetErrorCode"),
            let errorText: ErrorText = symbols.function("BrotliDecoderErrorString")
        else { return nil }
        self.create = create
        self.destroy = destroy
        self.decompress = decompress
        self.errorCode = errorCode
        self.errorText = errorText
    }
}

/// Undoes br (RFC 7932); nothing may follow its one stream.
final class BrotliDecoder: Codec {
    private let library: BrotliLibrary
    private let decoder: OpaquePointer
    private(set) var isComplete = false

    /// - Throws: `CodecFailure.outOfMemory`.
    init(_ library: BrotliLibrary) throws(CodecFailure) {
        self.library = library
        guard let decoder = library.create(nil, nil, nil) else { throw .outOfMemory }
        self.decoder = decoder
    }

    deinit { library.destroy(decoder) }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        if isComplete {
            // It may have ended just when its output was full.
            guard input.isEmpty else { throw .corrupt("other bytes follow the end") }
            return CodecStep()
        }
        var (available, room) = (input.count, output.count)
        var next = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var place = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let (failed, ended): (CInt, CInt) = (0, 1)
        let result = library.decompress(decoder, &available, &next, &room, &place, nil)
        if result == failed {
            let code = library.errorCode(decoder)
            // BROTLI_DECODER_ERROR_ALLOC_* (brotli/decode.h).
            if (-30 ... -21).contains(code) { throw .outOfMemory }
            throw .corrupt(library.errorText(code).map { String(cString: $0) } ?? "brotli's code \(code)")
        }
        isComplete = result == ended
        return CodecStep(consumed: input.count - available, produced: output.count - room)
    }
}
