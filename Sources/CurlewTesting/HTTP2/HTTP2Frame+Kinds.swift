// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// MARK: Creating frames

extension HTTP2Frame {
    /// Creates a DATA frame (RFC 9113 §6.1).
    /// - Parameters:
    ///   - stream: The stream.
    ///   - bytes: The part of the body.
    ///   - endStream: Whether the frame is the last one.
    ///   - padding: The number of zero bytes to add as declared padding; nil for a frame without the padding field.
    public static func data(
        _ stream: Int, _ bytes: [UInt8] = [], endStream: Bool = false, padding: UInt8? = nil
    ) -> HTTP2Frame {
        var frame = HTTP2Frame(.data, flags: endStream ? .endStream : [], stream: stream, payload: bytes)
        if let padding {
            frame.flags.insert(.padded)
            frame.payload = [padding] + bytes + [UInt8](repeating: 0, count: Int(padding))
        }
        return frame
    }

    /// Creates a HEADERS frame with literal fields, without the dynamic table (RFC 9113 §6.2, RFC 7541 §6.2.2).
    /// - Parameters:
    ///   - stream: The stream.
    ///   - fields: Pseudo-header fields such as `:status` and other fields, sent unchanged and in this order.
    ///   - endStream: Whether no body follows.
    ///   - endHeaders: Whether no CONTINUATION follows.
    public static func headers(
        _ stream: Int, _ fields: [(name: String, value: String)], endStream: Bool = false, endHeaders: Bool = true
    ) -> HTTP2Frame {
        var flags: Flags = endStream ? .endStream : []
        if endHeaders { flags.insert(.endHeaders) }
        return HTTP2Frame(.headers, flags: flags, stream: stream, payload: HPACK.encode(fields))
    }

    /// Creates a CONTINUATION frame (RFC 9113 §6.10) with more fields.
    public static func continuation(
        _ stream: Int, _ fields: [(name: String, value: String)] = [], endHeaders: Bool = true
    ) -> HTTP2Frame {
        HTTP2Frame(
            .continuation, flags: endHeaders ? .endHeaders : [], stream: stream, payload: HPACK.encode(fields))
    }

    /// Creates a PRIORITY frame (RFC 9113 §6.3).
    /// - Parameters:
    ///   - stream: The stream to prioritize.
    ///   - parent: The stream on which it depends.
    ///   - weight: The weight minus one, as encoded in the frame.
    public static func priority(_ stream: Int, dependsOn parent: Int, weight: UInt8 = 15) -> HTTP2Frame {
        HTTP2Frame(.priority, stream: stream, payload: bigEndian(UInt32(truncatingIfNeeded: parent)) + [weight])
    }

    /// Creates an RST_STREAM frame (RFC 9113 §6.4).
    public static func rstStream(_ stream: Int, _ code: HTTP2ErrorCode) -> HTTP2Frame {
        HTTP2Frame(.rstStream, stream: stream, payload: bigEndian(code.rawValue))
    }

    /// Creates a SETTINGS frame (RFC 9113 §6.5).
    public static func settings(_ settings: [HTTP2Setting] = []) -> HTTP2Frame {
        let payload = settings.flatMap { setting -> [UInt8] in
            bigEndian(UInt32(setting.identifier)).suffix(2) + bigEndian(setting.value)
        }
        return HTTP2Frame(.settings, stream: 0, payload: payload)
    }

    /// A SETTINGS frame that acknowledges the peer's SETTINGS (RFC 9113 §6.5.3).
    public static let settingsAck = HTTP2Frame(.settings, flags: .ack, stream: 0)

    /// Creates a PUSH_PROMISE frame (RFC 9113 §6.6).
    /// - Parameters:
    ///   - stream: The stream of the associated request.
    ///   - promised: The stream that would carry the pushed response.
    ///   - fields: The pseudo-header fields and other fields of the promised request.
    public static func pushPromise(
        _ stream: Int, promising promised: Int, _ fields: [(name: String, value: String)]
    ) -> HTTP2Frame {
        let payload = bigEndian(UInt32(truncatingIfNeeded: promised)) + HPACK.encode(fields)
        return HTTP2Frame(.pushPromise, flags: .endHeaders, stream: stream, payload: payload)
    }

    /// Creates a PING frame (RFC 9113 §6.7).
    /// - Parameters:
    ///   - opaque: Eight bytes that the acknowledgement repeats.
    ///   - isAnswer: Whether the frame is an acknowledgement.
    public static func ping(_ opaque: [UInt8] = [UInt8](repeating: 0, count: 8), ack isAnswer: Bool = false)
        -> HTTP2Frame
    {
        HTTP2Frame(.ping, flags: isAnswer ? .ack : [], stream: 0, payload: opaque)
    }

    /// Creates a GOAWAY frame (RFC 9113 §6.8).
    /// - Parameters:
    ///   - lastStream: The highest stream that the sender has processed or may still process.
    ///   - code: The reason.
    ///   - debug: Additional debug data.
    public static func goAway(
        lastStream: Int, _ code: HTTP2ErrorCode = .noError, debug: [UInt8] = []
    ) -> HTTP2Frame {
        let payload = bigEndian(UInt32(truncatingIfNeeded: lastStream)) + bigEndian(code.rawValue) + debug
        return HTTP2Frame(.goAway, stream: 0, payload: payload)
    }

    /// Creates a WINDOW_UPDATE frame (RFC 9113 §6.9).
    public static func windowUpdate(_ stream: Int, by increment: Int) -> HTTP2Frame {
        HTTP2Frame(.windowUpdate, stream: stream, payload: bigEndian(UInt32(truncatingIfNeeded: increment)))
    }
}

// MARK: Reading payloads

extension HTTP2Frame {
    /// The payload without padding and without the priority field of HEADERS; nil if the payload is too short for them.
    public var content: ArraySlice<UInt8>? {
        var rest = payload[...]
        if flags.contains(.padded), [.data, .headers, .pushPromise].contains(kind) {
            guard let padding = rest.popFirst(), rest.count >= Int(padding) else { return nil }
            rest = rest.dropLast(Int(padding))
        }
        if kind == .headers, flags.contains(.priority) {
            guard rest.count >= 5 else { return nil }
            rest = rest.dropFirst(5)
        }
        return rest
    }

    /// The error code of RST_STREAM and GOAWAY; nil for other kinds and for payloads that are too short.
    public var errorCode: HTTP2ErrorCode? {
        switch kind {
        case .rstStream where payload.count >= 4: HTTP2ErrorCode(rawValue: number(payload[..<4]))
        case .goAway where payload.count >= 8: HTTP2ErrorCode(rawValue: number(payload[4..<8]))
        default: nil
        }
    }

    /// The last stream of GOAWAY; nil for other kinds and for payloads that are too short.
    public var lastStream: Int? {
        kind == .goAway && payload.count >= 8 ? Int(number(payload[..<4]) & 0x7FFF_FFFF) : nil
    }

    /// The increment of WINDOW_UPDATE in bytes; nil for other kinds and for payloads that are too short.
    public var increment: Int? {
        kind == .windowUpdate && payload.count >= 4 ? Int(number(payload[..<4]) & 0x7FFF_FFFF) : nil
    }

    /// The entries of SETTINGS in order; empty for other kinds.
    public var settings: [HTTP2Setting] {
        guard kind == .settings else { return [] }
        return stride(from: 0, to: payload.count - payload.count % 6, by: 6).map { at -> HTTP2Setting in
            let identifier = number(payload[at..<(at + 2)])
            let value = number(payload[(at + 2)..<(at + 6)])
            return HTTP2Setting(identifier: UInt16(truncatingIfNeeded: identifier), value: value)
        }
    }
}
