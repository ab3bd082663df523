// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An amount of bytes, with its unit in its type.
///
/// Arithmetic and the factories clamp to the range of `Int64` instead of overflowing.
///
/// ```swift
/// configuration.limits.responseBody = .mebibytes(8)
/// print(ByteCount.bytes(1_572_864))     // 1.5 MiB
/// ```
public struct ByteCount: Hashable, Sendable {
    /// The amount in bytes.
    public let bytes: Int64

    /// Creates an amount in bytes.
    public init(_ bytes: Int64) {
        self.bytes = bytes
    }

    /// An amount in bytes.
    public static func bytes(_ count: Int64) -> ByteCount {
        ByteCount(count)
    }

    /// An amount in units of 1024 bytes.
    public static func kibibytes(_ count: Int64) -> ByteCount {
        scaled(count, by: 1 << 10)
    }

    /// An amount in units of 1024² bytes.
    public static func mebibytes(_ count: Int64) -> ByteCount {
        scaled(count, by: 1 << 20)
    }

    /// An amount in units of 1024³ bytes.
    public static func gibibytes(_ count: Int64) -> ByteCount {
        scaled(count, by: 1 << 30)
    }

    /// Returns the sum, clamped to the range of `Int64`.
    public static func + (lhs: ByteCount, rhs: ByteCount) -> ByteCount {
        let (sum, overflow) = lhs.bytes.addingReportingOverflow(rhs.bytes)
        return ByteCount(overflow ? limit(isNegative: rhs.bytes < 0) : sum)
    }

    /// Returns the difference, clamped to the range of `Int64`.
    public static func - (lhs: ByteCount, rhs: ByteCount) -> ByteCount {
        let (difference, overflow) = lhs.bytes.subtractingReportingOverflow(rhs.bytes)
        return ByteCount(overflow ? limit(isNegative: rhs.bytes > 0) : difference)
    }

    private static func scaled(_ count: Int64, by unit: Int64) -> ByteCount {
        let (product, overflow) = count.multipliedReportingOverflow(by: unit)
        return ByteCount(overflow ? limit(isNegative: count < 0) : product)
    }

    private static func limit(isNegative: Bool) -> Int64 {
        isNegative ? .min : .max
    }
}

extension ByteCount: Comparable, ExpressibleByIntegerLiteral, Codable {
    /// Creates an amount in bytes from a literal.
    public init(integerLiteral value: Int64) {
        self.init(value)
    }

    /// Decodes a single number of bytes.
    /// - Throws: `DecodingError` when the value is not a whole number.
    public init(from decoder: any Decoder) throws {
        self.init(try decoder.singleValueContainer().decode(Int64.self))
    }

    /// Encodes a single number of bytes.
    /// - Throws: Any error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(bytes)
    }

    /// Orders by amount.
    public static func < (lhs: ByteCount, rhs: ByteCount) -> Bool {
        lhs.bytes < rhs.bytes
    }
}

extension ByteCount: CustomStringConvertible {
    /// The amount in the largest unit that fits, to a tenth, in English: "1 byte", "512 bytes", "1.5 MiB".
    public var description: String {
        let magnitude = bytes.magnitude
        let sign = bytes < 0 ? "-" : ""
        guard magnitude >= 1024 else { return "\(sign)\(magnitude) \(magnitude == 1 ? "byte" : "bytes")" }
        var exponent: UInt64 = 1
        while exponent < 6, Self.tenths(of: magnitude, shift: exponent * 10) >= 10_240 { exponent += 1 }
        let tenths = Self.tenths(of: magnitude, shift: exponent * 10)
        let fraction = tenths % 10 == 0 ? "" : ".\(tenths % 10)"
        return "\(sign)\(tenths / 10)\(fraction) \(Self.units[Int(exponent) - 1])"
    }

    private static let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// Returns `magnitude` in tenths of `1 << shift`, rounded to the nearest.
    private static func tenths(of magnitude: UInt64, shift: UInt64) -> UInt64 {
        let (whole, rest) = (magnitude >> shift, magnitude & (1 << shift - 1))
        // Ten times a remainder of 60 bits fits in 64 bits.
        return whole * 10 + (rest * 10 + 1 << (shift - 1)) >> shift
    }
}

extension ByteCount {
    /// The default limit of a body that is collected in memory: 64 MiB.
    public static let defaultBodyLimit = ByteCount.mebibytes(64)
}
