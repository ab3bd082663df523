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
    fileprivate typealias Decompress =
        @convention(c) @Sendable (
            OpaquePointer, UnsafeMutablePointer<curlew_zstd_output>, UnsafeMutablePointer<curlew_zstd_input>
        ) -> Int
    fileprivate typealias IsError = @convention(c) @Sendable (Int) -> CUnsignedInt
    fileprivate typealias ErrorName = @convention(c) @Sendable (Int) -> UnsafePointer<CChar>?

    fileprivate let create: Create
    fileprivate let release: Release
    fileprivate let setParameter: SetParameter
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
            let decompress: Decompress = symbols.function("ZSTD_decompressStream"),
            let isError: IsError = symbols.function("ZSTD_isError"),
            let errorName: ErrorName = symbols.function("ZSTD_getErrorName")
        else { return nil }
        self.create = create
        self.release = release
        self.setParameter = setParameter
        self.decompress = decompress
        self.isError = isError
        self.errorName = errorName
    }
}

/// Decodes zstd (RFC 8878): any number of frames, each with a window of at most 8 MiB (RFC 9659).
final class ZstandardDecoder: Codec {
    private let library: ZstandardLibrary
    private let decoder: OpaquePointer
    private(set) var isComplete = false

    /// - Throws: `CodecFailure.outOfMemory`.
    init(_ library: ZstandardLibrary) throws(CodecFailure) {
        self.library = library
        guard let decoder = library.create() else { throw .outOfMemory }
        self.decoder = decoder
        // ZSTD_d_windowLogMax: 1 << 23 is 8 MiB.
        _ = library.setParameter(decoder, 100, 23)
    }

    deinit { _ = library.release(decoder) }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        // Between frames the decoder has no output without more input.
        if isComplete && input.isEmpty { return CodecStep() }
        var source = curlew_zstd_input(src: input.baseAddress, size: input.count, pos: 0)
        var target = curlew_zstd_output(dst: output.baseAddress, size: output.count, pos: 0)
        let result = library.decompress(decoder, &target, &source)
        if library.isError(result) != 0 {
            switch -result {
            // ZSTD_error_frameParameter_windowTooLarge and ZSTD_error_memory_allocation (zstd_errors.h).
            case 16: throw .corrupt("its window is larger than the 8 MiB of RFC 9659")
            case 64: throw .outOfMemory
            default: throw .corrupt(library.errorName(result).map { String(cString: $0) } ?? "zstd's code \(result)")
            }
        }
        isComplete = result == 0
        return CodecStep(consumed: source.pos, produced: target.pos)
    }
}
