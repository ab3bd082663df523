// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Why bytes could not be decoded or encoded.
enum CodecFailure: Error, Equatable {
    /// The bytes are not what the coding writes; the reason in the library's words.
    case corrupt(String)
    case outOfMemory
}

/// One coding's decoder, fed and emptied a buffer at a time, used by one task at a time.
protocol Codec: AnyObject {
    /// Whether the input may end here: after the coding's own end, and not inside the next part.
    var isComplete: Bool { get }

    /// Decodes as much of `input` as fits into `output`.
    ///
    /// Asked with some input, or with none when the last call filled its output.
    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep
}

/// How far one step went, in bytes.
struct CodecStep {
    var consumed = 0
    var produced = 0
}

/// What one step gave.
struct DecodedPiece {
    var consumed: Int
    var bytes: [UInt8]
    /// Whether the output was filled, so that more may follow without more input.
    var isFull: Bool
}

/// No step takes or gives more than this, so that whoever waits for one never waits long.
private let largestStep = 64 << 10

extension Codec {
    /// Takes at most 64 KiB of `input` from `offset` on, and gives at most as much.
    func decode(_ input: ByteChunk, from offset: Int) throws(CodecFailure) -> DecodedPiece {
        var failure: CodecFailure?
        var taken = CodecStep()
        let bytes = [UInt8](unsafeUninitializedCapacity: largestStep) { buffer, count in
            input.withUnsafeBytes { raw in
                let end = min(raw.count, offset + largestStep)
                do throws(CodecFailure) {
                    taken = try step(
                        UnsafeRawBufferPointer(rebasing: raw[offset..<end]), UnsafeMutableRawBufferPointer(buffer))
                } catch {
                    failure = error
                }
            }
            count = taken.produced
        }
        if let failure { throw failure }
        if taken.consumed == 0 && taken.produced == 0 && offset < input.count {
            throw .corrupt("the decoder stands still")
        }
        let isSmall = bytes.count <= largestStep / 4
        // A short piece must not keep 64 KiB alive.
        return DecodedPiece(
            consumed: taken.consumed, bytes: isSmall ? Array(bytes[...]) : bytes,
            isFull: taken.produced == largestStep)
    }
}

/// The functions of a shared library that is opened at run time and stays open for the life of the process.
struct LibrarySymbols {
    private let handle: UnsafeMutableRawPointer

    /// Nil when there is no library of that soname.
    init?(_ soname: String) {
        guard let handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL) else { return nil }
        self.handle = handle
    }

    /// A function by its name; the caller says what C type it has.
    func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function? {
        dlsym(handle, name).map { unsafeBitCast($0, to: type) }
    }
}
