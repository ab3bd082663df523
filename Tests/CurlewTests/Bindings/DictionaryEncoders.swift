// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import FoundationEssentials

@testable import Curlew

/// Compresses with zstd, with and without a dictionary (RFC 9842 §5).
enum ZstandardEncoder {
    /// Compresses for the content coding dcz.
    ///
    /// - Parameters:
    ///   - windowLog: The binary logarithm of the window that the frame declares, even if the content is shorter. By
    ///     default the window is at most 2 MiB, and zstd does not use distant parts of a larger dictionary.
    ///   - header: The bytes before the frame; by default those of the RFC for the dictionary. An empty header gives
    ///     another frame for the same body.
    static func dcz(
        _ bytes: [UInt8], dictionary: [UInt8], windowLog: Int? = nil, header: [UInt8]? = nil
    ) throws -> [UInt8] {
        try (header ?? self.header(for: dictionary)) + frame(bytes, dictionary, windowLog)
    }

    /// Compresses without a dictionary and without a header.
    static func plain(_ bytes: [UInt8]) throws -> [UInt8] { try frame(bytes, [], nil) }

    /// Returns the 40 bytes before a frame: a skippable frame with the digest of the dictionary.
    static func header(for dictionary: [UInt8]) throws -> [UInt8] {
        try [0x5E, 0x2A, 0x4D, 0x18, 0x20, 0, 0, 0] + digest(of: dictionary)
    }

    private static func frame(_ bytes: [UInt8], _ dictionary: [UInt8], _ windowLog: Int?) throws -> [UInt8] {
        let library = try ZstandardEncoderLibrary()
        guard let context = library.create() else { throw EncoderFailure("zstd has no memory") }
        defer { _ = library.release(context) }
        if let windowLog {
            // ZSTD_c_windowLog and ZSTD_c_enableLongDistanceMatching; the latter finds matches far back in a large
            // dictionary.
            _ = try library.check(library.setParameter(context, 101, CInt(windowLog)))
            _ = try library.check(library.setParameter(context, 160, 1))
        }
        return try dictionary.withUnsafeBytes { prefix in
            _ = try library.check(library.usePrefix(context, prefix.baseAddress, prefix.count))
            return try bytes.withUnsafeBytes { try library.compress($0, context) }
        }
    }
}

/// Compresses with brotli and a dictionary (RFC 9842 §4); mark tests that use it with `.enabledIfInstalled(.brotli)`.
enum BrotliEncoder {
    /// The path of brotli's encoder and decoder in one library, which Scripts/setup-peers builds.
    ///
    /// The installed brotli may be older than 1.1, which lacks dictionaries.
    static let library = "/usr/local/lib/curlew-brotli/libbrotli.so"

    static var isInstalled: Bool { FileManager.default.fileExists(atPath: library) }

    /// Compresses for the content coding dcb.
    ///
    /// - Parameter header: The bytes before the stream; by default those of the RFC for the dictionary.
    static func dcb(_ bytes: [UInt8], dictionary: [UInt8], header: [UInt8]? = nil) throws -> [UInt8] {
        let library = try BrotliEncoderLibrary()
        guard let encoder = library.create(nil, nil, nil) else { throw EncoderFailure("brotli has no memory") }
        defer { library.destroy(encoder) }
        // BROTLI_PARAM_QUALITY. Below 5 the encoder does not use the dictionary; above 9 it is slow.
        let quality: CInt = 9
        _ = library.setParameter(encoder, 1, UInt32(quality))
        let stream = try dictionary.withUnsafeBufferPointer { raw in
            // BROTLI_SHARED_DICTIONARY_RAW is 0. The prepared dictionary refers to these bytes.
            guard let prepared = library.prepare(0, raw.count, raw.baseAddress, quality, nil, nil, nil) else {
                throw EncoderFailure("brotli refuses the dictionary")
            }
            defer { library.destroyPrepared(prepared) }
            guard library.attach(encoder, prepared) != 0 else { throw EncoderFailure("brotli refuses the dictionary") }
            return try bytes.withUnsafeBufferPointer { try library.compress($0, encoder) }
        }
        return try (header ?? self.header(for: dictionary)) + stream
    }

    /// Returns the 36 bytes before a stream: a magic number and the digest of the dictionary.
    static func header(for dictionary: [UInt8]) throws -> [UInt8] {
        try [0xFF, 0x44, 0x43, 0x42] + digest(of: dictionary)
    }
}

/// The reason why a test cannot compress.
private struct EncoderFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

private func digest(of dictionary: [UInt8]) throws -> [UInt8] {
    guard let digest = MessageDigest.digest(.sha256, of: dictionary) else {
        throw EncoderFailure("OpenSSL has no SHA-256")
    }
    return digest
}

extension LibrarySymbols {
    fileprivate static func open(_ path: String) throws -> LibrarySymbols {
        guard let symbols = LibrarySymbols(path) else { throw EncoderFailure("\(path) is not installed") }
        return symbols
    }

    fileprivate func required<Function>(_ name: String, as type: Function.Type = Function.self) throws -> Function {
        guard let function = function(name, as: type) else { throw EncoderFailure("the library lacks \(name)") }
        return function
    }
}

/// The functions of zstd's encoder.
private struct ZstandardEncoderLibrary {
    let create: @convention(c) () -> OpaquePointer?
    let release: @convention(c) (OpaquePointer?) -> Int
    let setParameter: @convention(c) (OpaquePointer, CInt, CInt) -> Int
    let usePrefix: @convention(c) (OpaquePointer, UnsafeRawPointer?, Int) -> Int
    private let compressStream:
        @convention(c) (
            OpaquePointer, UnsafeMutablePointer<curlew_zstd_output>, UnsafeMutablePointer<curlew_zstd_input>, CInt
        ) -> Int
    private let isError: @convention(c) (Int) -> CUnsignedInt
    private let errorName: @convention(c) (Int) -> UnsafePointer<CChar>?

    init() throws {
        let symbols = try LibrarySymbols.open(ZstandardLibrary.soname)
        create = try symbols.required("ZSTD_createCCtx")
        release = try symbols.required("ZSTD_freeCCtx")
        setParameter = try symbols.required("ZSTD_CCtx_setParameter")
        usePrefix = try symbols.required("ZSTD_CCtx_refPrefix")
        compressStream = try symbols.required("ZSTD_compressStream2")
        isError = try symbols.required("ZSTD_isError")
        errorName = try symbols.required("ZSTD_getErrorName")
    }

    func check(_ result: Int) throws -> Int {
        guard isError(result) == 0 else {
            throw EncoderFailure(errorName(result).map { String(cString: $0) } ?? "zstd's code \(result)")
        }
        return result
    }

    /// Compresses all bytes to one frame.
    func compress(_ bytes: UnsafeRawBufferPointer, _ context: OpaquePointer) throws -> [UInt8] {
        // Room for bytes that cannot be compressed, in blocks of 1 KiB, the smallest window.
        let capacity = bytes.count + bytes.count / 128 + 1024
        return try [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var source = curlew_zstd_input(src: bytes.baseAddress, size: bytes.count, pos: 0)
            var target = curlew_zstd_output(dst: buffer.baseAddress, size: buffer.count, pos: 0)
            // ZSTD_e_continue and ZSTD_e_end. If the first call ended the frame, zstd would know the length of the
            // content and would reduce the window to it.
            _ = try check(compressStream(context, &target, &source, 0))
            guard try check(compressStream(context, &target, &source, 2)) == 0 else {
                throw EncoderFailure("the frame is longer than \(capacity) bytes")
            }
            count = target.pos
        }
    }
}

/// The functions of brotli's encoder.
private struct BrotliEncoderLibrary {
    let create: @convention(c) (UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?) -> OpaquePointer?
    let destroy: @convention(c) (OpaquePointer?) -> Void
    let setParameter: @convention(c) (OpaquePointer, CInt, UInt32) -> CInt
    let prepare:
        @convention(c) (
            CInt, Int, UnsafePointer<UInt8>?, CInt, UnsafeRawPointer?, UnsafeRawPointer?, UnsafeRawPointer?
        ) -> OpaquePointer?
    let attach: @convention(c) (OpaquePointer, OpaquePointer) -> CInt
    let destroyPrepared: @convention(c) (OpaquePointer) -> Void
    private let compressStream:
        @convention(c) (
            OpaquePointer, CInt, UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafePointer<UInt8>?>,
            UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>?
        ) -> CInt
    private let isFinished: @convention(c) (OpaquePointer) -> CInt

    init() throws {
        let symbols = try LibrarySymbols.open(BrotliEncoder.library)
        create = try symbols.required("BrotliEncoderCreateInstance")
        destroy = try symbols.required("BrotliEncoderDestroyInstance")
        setParameter = try symbols.required("BrotliEncoderSetParameter")
        prepare = try symbols.required("BrotliEncoderPrepareDictionary")
        attach = try symbols.required("BrotliEncoderAttachPreparedDictionary")
        destroyPrepared = try symbols.required("BrotliEncoderDestroyPreparedDictionary")
        compressStream = try symbols.required("BrotliEncoderCompressStream")
        isFinished = try symbols.required("BrotliEncoderIsFinished")
    }

    /// Compresses all bytes to one stream.
    func compress(_ bytes: UnsafeBufferPointer<UInt8>, _ encoder: OpaquePointer) throws -> [UInt8] {
        var (availableInput, nextInput) = (bytes.count, bytes.baseAddress)
        var stream: [UInt8] = []
        while isFinished(encoder) == 0 {
            stream += try [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
                var (availableOutput, nextOutput) = (buffer.count, buffer.baseAddress)
                // BROTLI_OPERATION_FINISH is 2.
                guard
                    compressStream(encoder, 2, &availableInput, &nextInput, &availableOutput, &nextOutput, nil) != 0
                else { throw EncoderFailure("brotli cannot compress") }
                count = buffer.count - availableOutput
            }
        }
        return stream
    }
}
