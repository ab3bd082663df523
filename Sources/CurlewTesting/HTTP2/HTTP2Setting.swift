// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One entry of a SETTINGS frame (RFC 9113 §6.5.2): any identifier with any value, allowed or not.
///
/// ```swift
/// let script = HTTP2Script.now.settings([.maxConcurrentStreams(1), .initialWindowSize(0)])
/// ```
public struct HTTP2Setting: Sendable, Hashable {
    /// The identifier of the setting.
    public let identifier: UInt16
    /// The value of the setting.
    public let value: UInt32

    /// Creates a setting with any identifier.
    public init(identifier: UInt16, value: UInt32) {
        self.identifier = identifier
        self.value = value
    }

    /// SETTINGS_HEADER_TABLE_SIZE: the size of the sender's decoding table in bytes; 4096 unless sent.
    public static func headerTableSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 1, value: bytes) }
    /// SETTINGS_ENABLE_PUSH: whether the sender accepts pushed streams.
    public static func enablePush(_ isEnabled: Bool) -> HTTP2Setting {
        HTTP2Setting(identifier: 2, value: isEnabled ? 1 : 0)
    }
    /// SETTINGS_MAX_CONCURRENT_STREAMS: the number of streams that the peer may have open; unlimited unless sent.
    public static func maxConcurrentStreams(_ count: UInt32) -> HTTP2Setting {
        HTTP2Setting(identifier: 3, value: count)
    }
    /// SETTINGS_INITIAL_WINDOW_SIZE: the initial window of each stream in bytes of DATA; 65 535 unless sent.
    public static func initialWindowSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 4, value: bytes) }
    /// SETTINGS_MAX_FRAME_SIZE: the largest payload in bytes that the sender accepts; 16 384 unless sent.
    public static func maxFrameSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 5, value: bytes) }
    /// SETTINGS_MAX_HEADER_LIST_SIZE: the largest uncompressed list of fields, in bytes, that the sender accepts; a
    /// hint.
    public static func maxHeaderListSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 6, value: bytes) }

    /// The error code for a client that sends an invalid value; nil for valid values (RFC 9113 §6.5.2).
    var fault: HTTP2ErrorCode? {
        switch identifier {
        case Number.enablePush where value > 1: .protocolError
        case Number.initialWindowSize where value > Int32.max: .flowControlError
        case Number.maxFrameSize where !(1 << 14..<1 << 24).contains(value): .protocolError
        default: nil
        }
    }

    /// The identifiers of the settings that the server evaluates.
    enum Number {
        static let enablePush: UInt16 = 2
        static let maxConcurrentStreams: UInt16 = 3
        static let initialWindowSize: UInt16 = 4
        static let maxFrameSize: UInt16 = 5
    }
}
