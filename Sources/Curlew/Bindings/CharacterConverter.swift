// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
internal import Glibc

/// A conversion to UTF-8 by glibc's iconv(3), open during the lifetime of the value; for one task at a time.
package struct CharacterConverter: ~Copyable {
    /// The reason why a conversion cannot be opened.
    package struct Refusal: Error, Equatable {
        /// `EINVAL` when glibc does not have the table, otherwise the reason why it could not be opened.
        package let code: Int32
        /// Whether the table is missing on this machine.
        package var isMissing: Bool { code == EINVAL }
    }

    /// The reason why a conversion stopped.
    package enum Stop {
        case end
        /// The bytes at the offset are not a valid character.
        case invalid
        /// The input ends inside a character.
        case incomplete
    }

    private let descriptor: iconv_t

    /// Opens a conversion.
    ///
    /// - Parameter charset: glibc's name of the character set. Never pass a name sent by a peer: glibc interprets
    ///   options and paths in names.
    /// - Throws: `Refusal`.
    package init(from charset: String) throws(Refusal) {
        guard let opened = iconv_open("UTF-8", charset), Int(bitPattern: opened) != -1 else {
            throw Refusal(code: errno)
        }
        descriptor = opened
    }

    deinit { _ = iconv_close(descriptor) }

    /// Converts the bytes from `offset` on up to the first invalid or incomplete character, appends the text, and sets
    /// `offset` to the end of the converted bytes.
    package func convert(_ data: Data, from offset: inout Int, into output: inout [UInt8]) -> Stop {
        data.withUnsafeBytes { raw -> Stop in
            var left = raw.count - offset
            guard left > 0, let start = raw.baseAddress else { return .end }
            // iconv declares its input as mutable and does not write to it.
            var input: UnsafeMutablePointer<CChar>? = UnsafeMutableRawPointer(mutating: start + offset)
                .assumingMemoryBound(to: CChar.self)
            defer { offset = raw.count - left }
            while true {
                let before = (left, output.count)
                switch step(&input, &left, into: &output) {
                case 0: return .end
                case E2BIG where before != (left, output.count): continue
                case EINVAL: return .incomplete
                default: return .invalid
                }
            }
        }
    }

    /// Appends the text that the conversion still buffers, and resets its shift state.
    package func finish(into output: inout [UInt8]) {
        output += [UInt8](unsafeUninitializedCapacity: minimumOutput) { buffer, count in
            var target = Self.characters(buffer)
            var availableOutput = buffer.count
            _ = iconv(descriptor, nil, nil, &target, &availableOutput)
            count = buffer.count - availableOutput
        }
    }

    /// Calls iconv once, and returns 0 or errno.
    private func step(
        _ input: inout UnsafeMutablePointer<CChar>?, _ left: inout Int, into output: inout [UInt8]
    ) -> Int32 {
        var code: Int32 = 0
        let capacity = min(maximumOutput, minimumOutput + 2 * left)
        output += [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var target = Self.characters(buffer)
            var availableOutput = capacity
            code = iconv(descriptor, &input, &left, &target, &availableOutput) == -1 ? errno : 0
            count = capacity - availableOutput
        }
        return code
    }

    private static func characters(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> UnsafeMutablePointer<CChar>? {
        UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
    }
}

/// The smallest output buffer: more than any character needs in UTF-8, together with previously buffered text.
private let minimumOutput = 32
private let maximumOutput = 64 << 10
