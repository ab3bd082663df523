// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The functions of brotli's decoder, loaded through its stable C interface.
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
    fileprivate typealias AttachDictionary =
        @convention(c) @Sendable (OpaquePointer, CInt, Int, UnsafePointer<UInt8>?) -> CInt
    fileprivate typealias ErrorCode = @convention(c) @Sendable (OpaquePointer) -> CInt
    fileprivate typealias ErrorText = @convention(c) @Sendable (CInt) -> UnsafePointer<CChar>?

    fileprivate let create: Create
    fileprivate let destroy: Destroy
    fileprivate let decompress: Decompress
    /// Nil before brotli 1.1.
    fileprivate let attachDictionary: AttachDictionary?
    fileprivate let errorCode: ErrorCode
    fileprivate let errorText: ErrorText

    /// Whether the library can decode with dictionaries.
    var acceptsDictionaries: Bool { attachDictionary != nil }

    /// The machine's brotli, opened once; nil when it is not installed.
    static let system = BrotliLibrary(library: soname)

    /// Opens a library; nil when it or one of its functions is missing.
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
        attachDictionary = symbols.function("BrotliDecoderAttachDictionary")
        self.errorCode = errorCode
        self.errorText = errorText
    }
}

/// Decodes br (RFC 7932); bytes after the end of the stream are an error.
final class BrotliDecoder: Codec {
    private let library: BrotliLibrary
    private let decoder: OpaquePointer
    /// The decoder reads its bytes.
    private let dictionary: CompressionDictionary?
    private(set) var isComplete = false

    /// - Parameter dictionary: Nil for the coding without a dictionary; the library must accept others.
    /// - Throws: `CodecFailure.outOfMemory`.
    init(_ library: BrotliLibrary, with dictionary: CompressionDictionary? = nil) throws(CodecFailure) {
        self.library = library
        self.dictionary = dictionary
        guard let decoder = library.create(nil, nil, nil) else { throw .outOfMemory }
        self.decoder = decoder
        guard let dictionary else { return }
        // BROTLI_SHARED_DICTIONARY_RAW (brotli/shared_dictionary.h).
        let raw: CInt = 0
        let bytes = dictionary.bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        guard library.attachDictionary?(decoder, raw, dictionary.bytes.count, bytes) == 1 else { throw .outOfMemory }
    }

    deinit { library.destroy(decoder) }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        if isComplete {
            // The stream may have ended exactly when its output was full.
            guard input.isEmpty else { throw .corrupt("other bytes follow the end") }
            return CodecStep()
        }
        var (availableInput, availableOutput) = (input.count, output.count)
        var nextInput = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        var nextOutput = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        let (failed, ended): (CInt, CInt) = (0, 1)
        let result = library.decompress(decoder, &availableInput, &nextInput, &availableOutput, &nextOutput, nil)
        if result == failed {
            let code = library.errorCode(decoder)
            // BROTLI_DECODER_ERROR_ALLOC_* (brotli/decode.h).
            if (-30 ... -21).contains(code) { throw .outOfMemory }
            throw .corrupt(library.errorText(code).map { String(cString: $0) } ?? "brotli's code \(code)")
        }
        isComplete = result == ended
        return CodecStep(consumed: input.count - availableInput, produced: output.count - availableOutput)
    }
}
