// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The reason why an HTTP/2 stream or connection ended (RFC 9113 §7): an open set, because any 32-bit value can arrive.
///
/// ```swift
/// let code = await server.waitForReset(of: request)
/// if code == .cancel { print("the client gave up") }
/// ```
public struct HTTP2ErrorCode: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The numeric error code.
    public let rawValue: UInt32

    /// Creates an error code from any number.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// No error: a graceful end.
    public static let noError = HTTP2ErrorCode(rawValue: 0)
    /// The peer broke the protocol.
    public static let protocolError = HTTP2ErrorCode(rawValue: 1)
    /// The sender is at fault.
    public static let internalError = HTTP2ErrorCode(rawValue: 2)
    /// The peer sent more than its window allowed.
    public static let flowControlError = HTTP2ErrorCode(rawValue: 3)
    /// The peer did not acknowledge SETTINGS in time.
    public static let settingsTimeout = HTTP2ErrorCode(rawValue: 4)
    /// A frame arrived for a stream that was already closed.
    public static let streamClosed = HTTP2ErrorCode(rawValue: 5)
    /// A frame has an impossible size.
    public static let frameSizeError = HTTP2ErrorCode(rawValue: 6)
    /// The stream was refused before any processing, so the client can retry the request.
    public static let refusedStream = HTTP2ErrorCode(rawValue: 7)
    /// The stream is not needed any more.
    public static let cancel = HTTP2ErrorCode(rawValue: 8)
    /// The state of header compression is lost.
    public static let compressionError = HTTP2ErrorCode(rawValue: 9)
    /// The connection of a CONNECT request was reset or closed.
    public static let connectError = HTTP2ErrorCode(rawValue: 10)
    /// The peer's behavior may be an attack.
    public static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 11)
    /// The TLS connection is too weak.
    public static let inadequateSecurity = HTTP2ErrorCode(rawValue: 12)
    /// HTTP/1.1 is required for this request.
    public static let http11Required = HTTP2ErrorCode(rawValue: 13)

    /// The name in RFC 9113, such as "REFUSED_STREAM"; for unknown codes the number in hexadecimal.
    public var description: String {
        rawValue < Self.names.count ? Self.names[Int(rawValue)] : "0x" + String(rawValue, radix: 16)
    }

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
        "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]
}
