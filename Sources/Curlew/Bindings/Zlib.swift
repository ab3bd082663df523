// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewShims
internal import Glibc

/// The functions of zlib, loaded through its stable C interface.
struct ZlibLibrary: Sendable {
    static let soname = "libz.so.1"

    fileprivate typealias Stream = UnsafeMutablePointer<curlew_z_stream>
    fileprivate typealias InflateInit =
        @convention(c) @Sendable (Stream, CInt, UnsafePointer<CChar>, CInt) -> CInt
    fileprivate typealias DeflateInit =
        @convention(c) @Sendable (Stream, CInt, CInt, CInt, CInt, CInt, UnsafePointer<CChar>, CInt) -> CInt
    fileprivate typealias Run = @convention(c) @Sendable (Stream, CInt) -> CInt
    fileprivate typealias Act = @convention(c) @Sendable (Stream) -> CInt

    fileprivate let inflateInit: InflateInit
    fileprivate let inflate: Run
    fileprivate let inflateReset: Act
    fileprivate let inflateEnd: Act
    fileprivate let deflateInit: DeflateInit
    fileprivate let deflate: Run
    fileprivate let deflateEnd: Act

    /// The machine's zlib, opened once; nil when it is not installed.
    static let system = ZlibLibrary(library: soname)

    /// Opens a library; nil when it or one of its functions is missing.
    init?(library: String) {
        guard let symbols = LibrarySymbols(library),
            let inflateInit: InflateInit = symbols.function("inflateInit2_"),
            let inflate: Run = symbols.function("inflate"),
            let inflateReset: Act = symbols.function("inflateReset"),
            let inflateEnd: Act = symbols.function("inflateEnd"),
            let deflateInit: DeflateInit = symbols.function("deflateInit2_"),
            let deflate: Run = symbols.function("deflate"),
            let deflateEnd: Act = symbols.function("deflateEnd")
        else { return nil }
        self.inflateInit = inflateInit
        self.inflate = inflate
        self.inflateReset = inflateReset
        self.inflateEnd = inflateEnd
        self.deflateInit = deflateInit
        self.deflate = deflate
        self.deflateEnd = deflateEnd
    }
}

/// The format around deflated data, by zlib's numbers.
enum ZlibFormat: CInt, Sendable {
    /// RFC 1952.
    case gzip = 31
    /// RFC 1950.
    case zlib = 15
    /// RFC 1951.
    case raw = -15
}

/// Result codes and flush modes of zlib.h.
private enum Code {
    static let ok: CInt = 0
    static let streamEnd: CInt = 1
    static let outOfMemory: CInt = -4
    static let noProgress: CInt = -5
    static let noFlush: CInt = 0
    static let syncFlush: CInt = 2
    static let finish: CInt = 4
    /// zlib compares the first character with its own version's, and the size with that of its own struct.
    static let version = "1"
    static let size = CInt(MemoryLayout<curlew_z_stream>.size)
}

/// Decodes gzip and deflate.
final class Inflater: Codec {
    /// gzip, or HTTP's deflate: zlib's format (RFC 9110 §8.4.1.2), or raw deflate, which some servers send.
    enum Expectation { case gzip, deflate }

    private enum Stage { case fresh, inside, ended, padded }

    private let library: ZlibLibrary
    private let expectation: Expectation
    private let stream: UnsafeMutablePointer<curlew_z_stream>
    private var isOpen = false
    private var stage = Stage.fresh
    /// The first bytes, until there are enough to distinguish zlib's format from raw deflate.
    private var opening: [UInt8] = []

    init(_ library: ZlibLibrary, _ expectation: Expectation) {
        self.library = library
        self.expectation = expectation
        stream = .allocate(capacity: 1)
        stream.initialize(to: curlew_z_stream())
    }

    deinit {
        if isOpen { _ = library.inflateEnd(stream) }
        stream.deallocate()
    }

    var isComplete: Bool { stage == .ended || stage == .padded }

    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        switch stage {
        case .inside: return try inflate(input, output)
        case .ended, .padded: return input.isEmpty ? CodecStep() : try continueAfterEnd(input, output)
        case .fresh:
            if expectation == .gzip {
                try open(.gzip)
                return try inflate(input, output)
            }
            let taken = min(2 - opening.count, input.count)
            opening += input.prefix(taken)
            guard opening.count == 2 else { return CodecStep(consumed: taken) }
            try open(looksLikeZlib ? .zlib : .raw)
            var failure: CodecFailure?
            var step = CodecStep()
            opening.withUnsafeBytes { bytes in
                do throws(CodecFailure) { step = try inflate(bytes, output) } catch { failure = error }
            }
            if let failure { throw failure }
            return CodecStep(consumed: taken, produced: step.produced)
        }
    }

    /// Whether the first two bytes are a zlib header: method 8, a window of at most 32 KiB, and a multiple of 31 (RFC
    /// 1950 §2.2).
    ///
    /// Raw deflate with the same bytes would have to begin with a stored block whose unused bits are set, which no
    /// encoder writes.
    private var looksLikeZlib: Bool {
        opening[0] & 0x0F == 8 && opening[0] >> 4 <= 7 && (Int(opening[0]) << 8 | Int(opening[1])) % 31 == 0
    }

    private func open(_ format: ZlibFormat) throws(CodecFailure) {
        guard library.inflateInit(stream, format.rawValue, Code.version, Code.size) == Code.ok else {
            throw .outOfMemory
        }
        isOpen = true
        stage = .inside
    }

    /// Continues after the end of a gzip member, where only another member (RFC 1952 §2.2) or padding zeros may follow.
    private func continueAfterEnd(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        let zeros = input.prefix { $0 == 0 }.count
        if expectation == .gzip && zeros > 0 {
            stage = .padded
            return CodecStep(consumed: zeros)
        }
        guard expectation == .gzip, stage == .ended, input.first == 0x1F, library.inflateReset(stream) == Code.ok
        else { throw .corrupt("other bytes follow the end") }
        stage = .inside
        return try inflate(input, output)
    }

    private func inflate(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep {
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        let result = library.inflate(stream, Code.noFlush)
        let step = CodecStep(
            consumed: input.count - Int(stream.pointee.avail_in), produced: output.count - Int(stream.pointee.avail_out)
        )
        switch result {
        case Code.ok, Code.noProgress: return step
        case Code.streamEnd:
            stage = .ended
            return step
        case Code.outOfMemory: throw .outOfMemory
        default: throw .corrupt(stream.pointee.msg.map { String(cString: $0) } ?? "zlib's code \(result)")
        }
    }
}

/// Compresses request bodies.
final class Deflater: BodyTransform {
    private let library: ZlibLibrary
    private let stream: UnsafeMutablePointer<curlew_z_stream>

    /// - Throws: `CodecFailure.outOfMemory`.
    init(_ library: ZlibLibrary, _ format: ZlibFormat = .gzip) throws(CodecFailure) {
        self.library = library
        stream = .allocate(capacity: 1)
        stream.initialize(to: curlew_z_stream())
        let (level, method, memory, strategy): (CInt, CInt, CInt, CInt) = (6, 8, 8, 0)
        let result = library.deflateInit(
            stream, level, method, format.rawValue, memory, strategy, Code.version, Code.size)
        guard result == Code.ok else { throw .outOfMemory }
    }

    deinit {
        _ = library.deflateEnd(stream)
        stream.deallocate()
    }

    func transform(_ bytes: [UInt8], flush: Bool) throws -> [UInt8] {
        try run(bytes, flush ? Code.syncFlush : Code.noFlush, atMost: .max)
    }

    func finish() throws -> [UInt8] { try run([], Code.finish, atMost: .max) }

    /// Returns all of `bytes` compressed; nil when the result is not smaller.
    func compressed(_ bytes: [UInt8]) throws(CodecFailure) -> [UInt8]? {
        let result = try run(bytes, Code.finish, atMost: bytes.count)
        return result.count < bytes.count ? result : nil
    }

    /// Returns zlib's output for `bytes`, cut off soon after `most` bytes.
    private func run(_ bytes: [UInt8], _ mode: CInt, atMost most: Int) throws(CodecFailure) -> [UInt8] {
        var result: [UInt8] = []
        var rest = bytes[...]
        repeat {
            // zlib counts in 32 bits.
            let part = rest.prefix(1 << 30)
            rest = rest.dropFirst(part.count)
            try run(part, rest.isEmpty ? mode : Code.noFlush, atMost: most, into: &result)
        } while !rest.isEmpty && result.count <= most
        return result
    }

    private func run(
        _ part: ArraySlice<UInt8>, _ mode: CInt, atMost most: Int, into result: inout [UInt8]
    ) throws(CodecFailure) {
        let failed = part.withUnsafeBytes { input -> Bool in
            stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(input.count)
            var isFull = true
            while isFull && result.count <= most {
                var code = Code.ok
                result += [UInt8](unsafeUninitializedCapacity: largestOutput) { buffer, count in
                    stream.pointee.next_out = buffer.baseAddress
                    stream.pointee.avail_out = UInt32(buffer.count)
                    code = library.deflate(stream, mode)
                    count = buffer.count - Int(stream.pointee.avail_out)
                    isFull = stream.pointee.avail_out == 0
                }
                guard [Code.ok, Code.streamEnd, Code.noProgress].contains(code) else { return true }
            }
            return false
        }
        if failed { throw .outOfMemory }
    }
}

private let largestOutput = 64 << 10
