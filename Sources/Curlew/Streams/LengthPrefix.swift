// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Streams {
    /// The encoding of the length that precedes a frame.
    public enum LengthPrefix: Hashable, Sendable {
        /// The order of a number's bytes.
        public enum ByteOrder: Hashable, Sendable {
            /// The most significant byte first, as in most network protocols.
            case bigEndian
            /// The least significant byte first.
            case littleEndian
        }

        /// One byte: frames of up to 255 bytes.
        case uint8
        /// Two bytes: frames of up to 65 535 bytes.
        case uint16(ByteOrder)
        /// Four bytes.
        case uint32(ByteOrder)
        /// Eight bytes.
        case uint64(ByteOrder)
        /// A varint as in Protocol Buffers: seven bits in each byte, the least significant first, and the high bit set
        /// in all bytes except the last.
        case varint

        /// The result of reading the received bytes of a prefix.
        enum Reading: Equatable {
            case incomplete
            case length(UInt64)
            /// The length has more than 64 bits.
            case overflow
        }

        /// Reads a prefix, which may be incomplete.
        func read(_ bytes: [UInt8]) -> Reading {
            guard let (width, order) = fixed else { return Self.varint(bytes) }
            guard bytes.count == width else { return .incomplete }
            let ordered = order == .bigEndian ? bytes : bytes.reversed()
            return .length(ordered.reduce(0) { $0 << 8 | UInt64($1) })
        }

        /// Returns the prefix for a frame of the given length; nil if the prefix cannot represent the length.
        func bytes(for length: Int) -> [UInt8]? {
            guard let (width, order) = fixed else {
                var (rest, bytes) = (UInt64(length), [UInt8]())
                while rest >= 0x80 {
                    bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                    rest >>= 7
                }
                return bytes + [UInt8(rest)]
            }
            if width < 8, length >> (8 * width) != 0 { return nil }
            let bytes = (0..<width).map { UInt8(truncatingIfNeeded: length >> (8 * $0)) }
            return order == .bigEndian ? bytes.reversed() : bytes
        }

        private var fixed: (width: Int, order: ByteOrder)? {
            switch self {
            case .uint8: (1, .bigEndian)
            case .uint16(let order): (2, order)
            case .uint32(let order): (4, order)
            case .uint64(let order): (8, order)
            case .varint: nil
            }
        }

        private static func varint(_ bytes: [UInt8]) -> Reading {
            guard let last = bytes.last else { return .incomplete }
            if bytes.count == 10, last > 1 { return .overflow }
            guard last < 0x80 else { return .incomplete }
            return .length(bytes.reversed().reduce(0) { $0 << 7 | UInt64($1 & 0x7F) })
        }
    }
}
