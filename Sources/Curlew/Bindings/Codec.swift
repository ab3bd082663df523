// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The reason why bytes could not be decoded or encoded.
enum CodecFailure: Error, Equatable {
    /// The bytes are invalid in the coding; with the reason in the library's words.
    case corrupt(String)
    case outOfMemory
}

/// The decoder of one coding, which processes a buffer at a time; for one task at a time.
protocol Codec: AnyObject {
    /// Whether the input may end here: after the end mark of the coding, and not inside another part.
    var isComplete: Bool { get }

    /// Decodes as much of `input` as fits into `output`.
    ///
    /// Call it with input, or without input if the last call filled its output.
    func step(
        _ input: UnsafeRawBufferPointer, _ output: UnsafeMutableRawBufferPointer
    ) throws(CodecFailure) -> CodecStep
}

/// The progress of one step, in bytes.
struct CodecStep {
    var consumed = 0
    var produced = 0
}

/// The result of one step.
struct DecodedChunk {
    var consumed: Int
    var bytes: [UInt8]
    /// Whether the output was filled, so that more output may follow without more input.
    var isFull: Bool
}

/// The maximum input and output of a step, which bounds the duration of a step.
private let largestStep = 64 << 10

extension Codec {
    /// Decodes at most 64 KiB of `input` from `offset` on, and returns at most 64 KiB.
    func decode(_ input: ByteChunk, from offset: Int) throws(CodecFailure) -> DecodedChunk {
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
            throw .corrupt("the decoder makes no progress")
        }
        let isSmall = bytes.count <= largestStep / 4
        // A short piece must not keep 64 KiB alive.
        return DecodedChunk(
            consumed: taken.consumed, bytes: isSmall ? Array(bytes[...]) : bytes,
            isFull: taken.produced == largestStep)
    }
}

/// The functions of a shared library that is opened at run time and stays open for the life of the process.
struct LibrarySymbols {
    private let handle: UnsafeMutableRawPointer

    /// Opens a library; nil when no library has that soname.
    init?(_ soname: String) {
        guard let handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL) else { return nil }
        self.handle = handle
    }

    /// Returns a function by its name; the caller must pass its correct C type.
    func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function? {
        dlsym(handle, name).map { unsafeBitCast($0, to: type) }
    }
}
