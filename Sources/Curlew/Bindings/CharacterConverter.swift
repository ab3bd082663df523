// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
internal import Glibc

/// One conversion to UTF-8 by glibc's iconv(3), open for as long as the value lives; used by one task at a time.
package struct CharacterConverter: ~Copyable {
    /// Why there is no such conversion.
    package struct Refusal: Error, Equatable {
        /// `EINVAL` when glibc does not have the table, or the reason why it could not be opened.
        package let code: Int32
        /// Whether the table is missing on this machine.
        package var isMissing: Bool { code == EINVAL }
    }

    /// Why a conversion stopped.
    package enum Stop {
        case end
        /// The bytes at the offset are no character.
        case invalid
        /// The input ends inside a character.
        case incomplete
    }

    private let descriptor: iconv_t

    /// Opens a conversion.
    ///
    /// - Parameter charset: glibc's name of it. Never what a peer sent: glibc reads options and paths out of names.
    /// - Throws: `Refusal`.
    package init(from charset: String) throws(Refusal) {
        guard let opened = iconv_open("UTF-8", charset), Int(bitPattern: opened) != -1 else {
            throw Refusal(code: errno)
        }
        descriptor = opened
    }

    deinit { _ = iconv_close(descriptor) }

    /// Appends what the bytes from `offset` on mean, as far as they mean something; `offset` says how far that is.
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

    /// Appends what the conversion has kept back, and forgets shift states.
    package func finish(into output: inout [UInt8]) {
        output += [UInt8](unsafeUninitializedCapacity: smallestRoom) { buffer, count in
            var target = Self.characters(buffer)
            var room = buffer.count
            _ = iconv(descriptor, nil, nil, &target, &room)
            count = buffer.count - room
        }
    }

    /// One call of iconv: 0, or errno.
    private func step(
        _ input: inout UnsafeMutablePointer<CChar>?, _ left: inout Int, into output: inout [UInt8]
    ) -> Int32 {
        var code: Int32 = 0
        let capacity = min(largestRoom, smallestRoom + 2 * left)
        output += [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
            var target = Self.characters(buffer)
            var room = capacity
            code = iconv(descriptor, &input, &left, &target, &room) == -1 ? errno : 0
            count = capacity - room
        }
        return code
    }

    private static func characters(_ buffer: UnsafeMutableBufferPointer<UInt8>) -> UnsafeMutablePointer<CChar>? {
        UnsafeMutableRawPointer(buffer.baseAddress)?.assumingMemoryBound(to: CChar.self)
    }
}

/// More than any character with what was kept back before it takes in UTF-8.
private let smallestRoom = 32
private let largestRoom = 64 << 10
