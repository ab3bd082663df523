// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An HTTP/2 frame as a value (RFC 9113 §4.1): nine bytes of header and a payload, valid or not.
///
/// The type checks nothing, so that a test can send invalid frames: any type, any flags, any stream and a wrong length.
///
/// ```swift
/// var cut = HTTP2Frame.data(1, [1, 2, 3])
/// cut.declaredLength = 4  // the next frame loses a byte to this one
/// let frames = [
///     HTTP2Frame.rstStream(1, .refusedStream),
///     HTTP2Frame.data(0, Array("on no stream".utf8)),
///     HTTP2Frame(.init(rawValue: 0xFA), stream: 3, payload: [1, 2, 3]),  // of an unknown type
///     cut,
/// ]
/// ```
public struct HTTP2Frame: Sendable, Hashable {
    /// The type of a frame (RFC 9113 §6): an open set of bytes.
    public struct Kind: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        /// The type byte in the frame's header.
        public let rawValue: UInt8

        /// Creates a frame type from any byte.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// DATA: a part of a body.
        public static let data = Kind(rawValue: 0)
        /// HEADERS: the beginning of a head or of trailers.
        public static let headers = Kind(rawValue: 1)
        /// PRIORITY: an obsolete priority hint.
        public static let priority = Kind(rawValue: 2)
        /// RST_STREAM: the end of a stream.
        public static let rstStream = Kind(rawValue: 3)
        /// SETTINGS: the sender's limits and preferences.
        public static let settings = Kind(rawValue: 4)
        /// PUSH_PROMISE: the announcement of a pushed stream.
        public static let pushPromise = Kind(rawValue: 5)
        /// PING: a liveness check of the connection, or its acknowledgement.
        public static let ping = Kind(rawValue: 6)
        /// GOAWAY: the end of new streams.
        public static let goAway = Kind(rawValue: 7)
        /// WINDOW_UPDATE: permission to send more DATA.
        public static let windowUpdate = Kind(rawValue: 8)
        /// CONTINUATION: more of a head or of trailers.
        public static let continuation = Kind(rawValue: 9)

        /// The name in RFC 9113, such as "DATA"; for unknown bytes the number in hexadecimal.
        public var description: String {
            rawValue < Self.names.count ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
        }

        private static let names = [
            "DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE",
            "CONTINUATION",
        ]
    }

    /// The flags of a frame; the meaning of a bit depends on the kind.
    public struct Flags: OptionSet, Sendable, Hashable {
        /// The flags byte in the frame's header.
        public let rawValue: UInt8

        /// Creates flags from any byte.
        public init(rawValue: UInt8) {
            self.rawValue = rawValue
        }

        /// END_STREAM of DATA and HEADERS: the sender has finished.
        public static let endStream = Flags(rawValue: 0x1)
        /// ACK of SETTINGS and PING.
        public static let ack = Flags(rawValue: 0x1)
        /// END_HEADERS of HEADERS, PUSH_PROMISE and CONTINUATION: the block of fields is complete.
        public static let endHeaders = Flags(rawValue: 0x4)
        /// PADDED of DATA, HEADERS and PUSH_PROMISE: the payload begins with the length of its padding.
        public static let padded = Flags(rawValue: 0x8)
        /// PRIORITY of HEADERS: the payload begins with five bytes of obsolete priority hints.
        public static let priority = Flags(rawValue: 0x20)
    }

    /// The type of the frame.
    public var kind: Kind
    /// The flags.
    public var flags: Flags
    /// The stream, 31 bits; 0 is the connection.
    public var stream: Int
    /// The bytes after the nine-byte header, including padding.
    public var payload: [UInt8]
    /// The length to declare instead of the payload's length; nil, the default, declares the real length.
    public var declaredLength: Int?

    /// Creates a frame from its parts.
    public init(_ kind: Kind, flags: Flags = [], stream: Int, payload: [UInt8] = []) {
        self.kind = kind
        self.flags = flags
        self.stream = stream
        self.payload = payload
    }

    /// The encoded frame.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headerSize + payload.count)
        Self.encodeHeader(kind, flags, stream, length: declaredLength ?? payload.count, to: &bytes)
        return bytes + payload
    }

    static let headerSize = 9

    static func encodeHeader(_ kind: Kind, _ flags: Flags, _ stream: Int, length: Int, to bytes: inout [UInt8]) {
        let length = UInt32(truncatingIfNeeded: length)
        bytes += [UInt8(truncatingIfNeeded: length >> 16), UInt8(truncatingIfNeeded: length >> 8)]
        bytes += [UInt8(truncatingIfNeeded: length), kind.rawValue, flags.rawValue]
        bytes += bigEndian(UInt32(truncatingIfNeeded: stream))
    }

    /// Decodes one complete frame and removes it from the front of the bytes.
    ///
    /// The reserved bit before the stream is ignored (RFC 9113 §4.1).
    /// - Parameter bytes: The received bytes; the method removes the frame from them.
    /// - Returns: The frame; nil, with unchanged bytes, if the frame is incomplete.
    public static func decode(from bytes: inout ArraySlice<UInt8>) -> HTTP2Frame? {
        guard let header = Header(bytes), bytes.count >= headerSize + header.length else { return nil }
        let start = bytes.startIndex + headerSize
        let frame = HTTP2Frame(
            header.kind, flags: header.flags, stream: header.stream,
            payload: Array(bytes[start..<start + header.length]))
        bytes = bytes[(start + header.length)...]
        return frame
    }

    /// The nine-byte header before a payload.
    struct Header {
        let length: Int
        let kind: Kind
        let flags: Flags
        let stream: Int

        init?(_ bytes: ArraySlice<UInt8>) {
            guard bytes.count >= headerSize else { return nil }
            let at = bytes.startIndex
            length = Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
            kind = Kind(rawValue: bytes[at + 3])
            flags = Flags(rawValue: bytes[at + 4])
            stream = Int(number(bytes[(at + 5)..<(at + 9)]) & 0x7FFF_FFFF)
        }
    }
}

extension HTTP2Frame: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// One line: kind, stream, flags and length.
    public var description: String {
        "\(kind) stream \(stream) flags 0x\(String(flags.rawValue, radix: 16)) length \(declaredLength ?? payload.count)"
    }

    /// The description, so that lists of frames stay readable.
    public var debugDescription: String { description }

    /// The description alone, without the payload, which may be large.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// Returns a number as four bytes, the highest first.
func bigEndian(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
}

/// Returns the number in at most four bytes, the highest first.
func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reduce(0) { $0 << 8 | UInt32($1) }
}
