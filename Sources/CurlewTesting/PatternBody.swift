// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Pseudo-random bytes that are a function of a seed and a position.
///
/// A body of many gigabytes needs no memory, and a test can compute its digest or any single byte.
///
/// ```swift
/// let body = PatternBody(seed: 7, length: 1 << 30)
/// server.on("GET", "/big", .pattern(body))
/// // … compare the digest of the received bytes with body.sha256
/// ```
public struct PatternBody: Sendable, Hashable {
    /// The seed, which selects the sequence of bytes.
    public let seed: UInt64
    /// The number of bytes.
    public let length: Int
    /// The position of the first byte in the seed's endless sequence.
    private let start: Int

    /// Creates a body from the first bytes of a seed's sequence.
    /// - Parameters:
    ///   - seed: Any number; the same seed gives the same bytes on any machine.
    ///   - length: The number of bytes.
    /// - Precondition: `length` is not negative.
    public init(seed: UInt64, length: Int) {
        self.init(seed: seed, length: length, start: 0)
    }

    private init(seed: UInt64, length: Int, start: Int) {
        precondition(length >= 0, "The length of a body is not negative.")
        self.seed = seed
        self.length = length
        self.start = start
    }

    /// A range of the body as a body of its own, as the response to a range request (RFC 9110 §14) contains it.
    /// - Precondition: The range lies inside `0 ..< length`.
    public subscript(range: Range<Int>) -> PatternBody {
        precondition(range.lowerBound >= 0 && range.upperBound <= length, "The range lies outside the body.")
        return PatternBody(seed: seed, length: range.count, start: start + range.lowerBound)
    }

    /// Returns one byte without computing the bytes before it.
    /// - Precondition: `offset` lies inside `0 ..< length`.
    public func byte(at offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < length, "The offset lies outside the body.")
        return bytes(in: offset..<(offset + 1))[0]
    }

    /// Returns a range of the body as an array; this needs memory for the range only.
    /// - Precondition: The range lies inside `0 ..< length`.
    public func bytes(in range: Range<Int>) -> [UInt8] {
        precondition(range.lowerBound >= 0 && range.upperBound <= length, "The range lies outside the body.")
        var buffer = [UInt8](repeating: 0, count: range.count)
        fillPattern(&buffer, seed: seed, offset: start + range.lowerBound)
        return buffer
    }

    /// All bytes as an array.
    public var bytes: [UInt8] {
        bytes(in: 0..<length)
    }

    /// The SHA-256 digest of the body, 64 lower-case hexadecimal digits.
    ///
    /// Each call computes the digest in time proportional to the length (about a second for a gigabyte) and in constant
    /// memory.
    public var sha256: String {
        var stream = SHA256Stream()
        var buffer = [UInt8](repeating: 0, count: 256 * 1024)
        var offset = 0
        while offset < length {
            if length - offset < buffer.count { buffer.removeLast(buffer.count - (length - offset)) }
            fillPattern(&buffer, seed: seed, offset: start + offset)
            stream.update(buffer)
            offset += buffer.count
        }
        return stream.hex
    }
}
