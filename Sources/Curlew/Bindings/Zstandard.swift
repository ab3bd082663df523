// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// The functions of zstd's decoder, loaded through its stable C interface.
struct ZstandardLibrary: Sendable {
    static let soname = "libzstd.so.1"

    fileprivate typealias Create = @convention(c) @Sendable () -> OpaquePointer?
    fileprivate typealias Release = @convention(c) @Sendable (OpaquePointer?) -> Int
    fileprivate typealias SetParameter = @convention(c) @Sendable (OpaquePointer, CInt, CInt) -> Int
    fileprivate typealias ReferToPrefix =
        @convention(c) @Sendable (OpaquePointer, UnsafeRawPointer?, Int) -> Int
    fileprivate typealias Decompress =
        @convention(c) @Sendable (
            OpaquePointer, UnsafeMutablePointer<curlew_zstd_output>, UnsafeMutablePointer<curlew_zstd_input>
        ) -> Int
    fileprivate typealias IsError = @convention(c) @Sendable (Int) -> CUnsignedInt
    fileprivate typealias ErrorName = @convention(c) @Sendable (Int) -> UnsafePointer<CChar>?

    fileprivate let create: Create
    fileprivate let release: Release
    fileprivate let setParameter: SetParameter
    fileprivate let referToPrefix: ReferToPrefix
    fileprivate let decompress: Decompress
    fileprivate let isError: IsError
    fileprivate let errorName: ErrorName

    /// The machine's zstd, opened once; nil when it is not installed.
    static let system = ZstandardLibrary(library: soname)

    /// Opens a library; nil when it or one of its functions is missing.
    init?(library: String) {
        guard let symbols = LibrarySymbols(library),
            let create: Create = symbols.function("ZSTD_createDStream"),
            let release: Release = symbols.function("ZSTD_freeDStream"),
            let setParameter: SetParameter = symbols.function("ZSTD_DCtx_setParameter"),
            let referToPrefix: ReferToPrefix = symbols.function("ZSTD_DCtx_refPrefix"),
            let decompress: Decompress = symbols.function("ZSTD_decompressStream"),
            let isError: IsError = symbols.function("ZSTD_isError"),
            let errorName: ErrorName = symbols.function("ZSTD_getErrorName")
        else { return nil }
        self.create = create
        self.release = release
        self.setParameter = setParameter
        self.referToPrefix = referToPrefix
        self.decompress = decompress
        self.isError = isError
        self.errorName = errorName
    }
}

/// Decodes zstd (RFC 8878): any number of frames, each with a window of at most 8 MiB (RFC 9659), or of 1.25 times the
/// dictionary, rounded up to a power of two, if that is larger (RFC 9842 §5).
final class ZstandardDecoder: Codec {
    private let library: ZstandardLibrary
    private let decoder: OpaquePointer
    private let dictionary: CompressionDictionary?
    /// The base-2 logarithm of the largest window.
    private let largestWindow: CInt
    private(set) var isComplete = false
    /// Whether the next frame needs the dictionary: zstd forgets it at the end of a frame.
    private var needsDictionary: Bool

    /// - Throws: `CodecFailure.outOfMemory`.
    init(_ library: ZstandardLibrary, with dictionary: CompressionDictionary? = nil) throws(CodecFailure) {
        self.library = library
        self.dictionary = dictionary
        needsDictionary = dictionary != nil
        largestWindow = Self.largestWindow(dictionary?.bytes.count ?? 0)
        guard let decoder = library.create() else { throw .outOfMemory }
        self.decoder = decoder
        // ZSTD_d_windowLogMax.
        _ = library.setParameter(decoder, 100, largestWindow)
    }

    deinit { _ = library.release(decoder) }

    /// Returns the base-2 logarithm of the largest window for a dictionary: the next power of two, at most 128 MiB.
    private static func largestWindow(_ dictionarySize: Int) -> CInt {
        var logarithm: CInt = 23
        while logarithm < 27, dictionarySize + dictionarySize / 4 > 1 << logarithm { logarithm += 1 }
        return logarithm
    }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        // Between frames the decoder has no output without more input.
        if isComplete && input.isEmpty { return CodecStep() }
        if needsDictionary, let dictionary {
            try check(library.referToPrefix(decoder, dictionary.bytes.baseAddress, dictionary.bytes.count))
            needsDictionary = false
        }
        var source = curlew_zstd_input(src: input.baseAddress, size: input.count, pos: 0)
        var target = curlew_zstd_output(dst: output.baseAddress, size: output.count, pos: 0)
        let result = library.decompress(decoder, &target, &source)
        try check(result)
        isComplete = result == 0
        if isComplete { needsDictionary = dictionary != nil }
        return CodecStep(consumed: source.pos, produced: target.pos)
    }

    private func check(_ result: Int) throws(CodecFailure) {
        guard library.isError(result) != 0 else { return }
        switch -result {
        // ZSTD_error_frameParameter_windowTooLarge and ZSTD_error_memory_allocation (zstd_errors.h).
        case 16:
            throw .corrupt("its window is larger than the maximum of \(1 << (largestWindow - 20)) MiB")
        case 64: throw .outOfMemory
        default: throw .corrupt(library.errorName(result).map { String(cString: $0) } ?? "zstd's code \(result)")
        }
    }
}
