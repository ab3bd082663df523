// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// MARK: Making

extension HTTP2Frame {
    /// DATA (RFC 9113 §6.1).
    /// - Parameters:
    ///   - stream: Its stream.
    ///   - bytes: The part of the body.
    ///   - endStream: Whether it is the last one.
    ///   - padding: How many zero bytes to add, and to say so; nil for a frame without the field.
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

    /// HEADERS with fields compressed by themselves, without the dynamic table (RFC 9113 §6.2, RFC 7541 §6.2.2).
    /// - Parameters:
    ///   - stream: Its stream.
    ///   - fields: Pseudo fields such as `:status` and fields, in this order and as they are.
    ///   - endStream: Whether no body follows.
    ///   - endHeaders: Whether no CONTINUATION follows.
    public static func headers(
        _ stream: Int, _ fields: [(name: String, value: String)], endStream: Bool = false, endHeaders: Bool = true
    ) -> HTTP2Frame {
        var flags: Flags = endStream ? .endStream : []
        if endHeaders { flags.insert(.endHeaders) }
        return HTTP2Frame(.headers, flags: flags, stream: stream, payload: HPACK.encode(fields))
    }

    /// CONTINUATION (RFC 9113 §6.10) with further fields.
    public static func continuation(
        _ stream: Int, _ fields: [(name: String, value: String)] = [], endHeaders: Bool = true
    ) -> HTTP2Frame {
        HTTP2Frame(
            .continuation, flags: endHeaders ? .endHeaders : [], stream: stream, payload: HPACK.encode(fields))
    }

    /// PRIORITY (RFC 9113 §6.3).
    /// - Parameters:
    ///   - stream: The stream it is about.
    ///   - parent: The stream it shall depend on.
    ///   - weight: Its share, minus one, as on the wire.
    public static func priority(_ stream: Int, dependsOn parent: Int, weight: UInt8 = 15) -> HTTP2Frame {
        HTTP2Frame(.priority, stream: stream, payload: bigEndian(UInt32(truncatingIfNeeded: parent)) + [weight])
    }

    /// RST_STREAM (RFC 9113 §6.4).
    public static func rstStream(_ stream: Int, _ code: HTTP2ErrorCode) -> HTTP2Frame {
        HTTP2Frame(.rstStream, stream: stream, payload: bigEndian(code.rawValue))
    }

    /// SETTINGS (RFC 9113 §6.5).
    public static func settings(_ settings: [HTTP2Setting] = []) -> HTTP2Frame {
        let payload = settings.flatMap { setting -> [UInt8] in
            bigEndian(UInt32(setting.identifier)).suffix(2) + bigEndian(setting.value)
        }
        return HTTP2Frame(.settings, stream: 0, payload: payload)
    }

    /// SETTINGS that acknowledges the peer's (RFC 9113 §6.5.3).
    public static let settingsAck = HTTP2Frame(.settings, flags: .ack, stream: 0)

    /// PUSH_PROMISE (RFC 9113 §6.6).
    /// - Parameters:
    ///   - stream: The stream of the request it belongs to.
    ///   - promised: The stream the pushed response would come on.
    ///   - fields: The pseudo fields and fields of the request that is taken for granted.
    public static func pushPromise(
        _ stream: Int, promising promised: Int, _ fields: [(name: String, value: String)]
    ) -> HTTP2Frame {
        let payload = bigEndian(UInt32(truncatingIfNeeded: promised)) + HPACK.encode(fields)
        return HTTP2Frame(.pushPromise, flags: .endHeaders, stream: stream, payload: payload)
    }

    /// PING (RFC 9113 §6.7).
    /// - Parameters:
    ///   - opaque: Eight bytes that the answer repeats.
    ///   - isAnswer: Whether it is the answer.
    public static func ping(_ opaque: [UInt8] = [UInt8](repeating: 0, count: 8), ack isAnswer: Bool = false)
        -> HTTP2Frame
    {
        HTTP2Frame(.ping, flags: isAnswer ? .ack : [], stream: 0, payload: opaque)
    }

    /// GOAWAY (RFC 9113 §6.8).
    /// - Parameters:
    ///   - lastStream: The highest stream that was or may yet be acted on.
    ///   - code: Why.
    ///   - debug: Anything, for people to read.
    public static func goAway(
        lastStream: Int, _ code: HTTP2ErrorCode = .noError, debug: [UInt8] = []
    ) -> HTTP2Frame {
        let payload = bigEndian(UInt32(truncatingIfNeeded: lastStream)) + bigEndian(code.rawValue) + debug
        return HTTP2Frame(.goAway, stream: 0, payload: payload)
    }

    /// WINDOW_UPDATE (RFC 9113 §6.9).
    public static func windowUpdate(_ stream: Int, by increment: Int) -> HTTP2Frame {
        HTTP2Frame(.windowUpdate, stream: stream, payload: bigEndian(UInt32(truncatingIfNeeded: increment)))
    }
}

// MARK: Reading

extension HTTP2Frame {
    /// The payload without padding and without the priority field of HEADERS; nil when it is shorter than it says.
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
