// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One entry of a SETTINGS frame (RFC 9113 §6.5.2): any identifier with any value, allowed or not.
///
/// ```swift
/// let script = HTTP2Script.now.settings([.maxConcurrentStreams(1), .initialWindowSize(0)])
/// ```
public struct HTTP2Setting: Sendable, Hashable {
    /// Which setting it is.
    public let identifier: UInt16
    /// Its value.
    public let value: UInt32

    /// A setting of any number.
    public init(identifier: UInt16, value: UInt32) {
        self.identifier = identifier
        self.value = value
    }

    /// SETTINGS_HEADER_TABLE_SIZE: how many bytes of dynamic table the sender's decoder has; 4096 unless sent.
    public static func headerTableSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 1, value: bytes) }
    /// SETTINGS_ENABLE_PUSH: whether the sender accepts pushed streams.
    public static func enablePush(_ isEnabled: Bool) -> HTTP2Setting {
        HTTP2Setting(identifier: 2, value: isEnabled ? 1 : 0)
    }
    /// SETTINGS_MAX_CONCURRENT_STREAMS: how many streams the peer may have open at a time; no limit unless sent.
    public static func maxConcurrentStreams(_ count: UInt32) -> HTTP2Setting {
        HTTP2Setting(identifier: 3, value: count)
    }
    /// SETTINGS_INITIAL_WINDOW_SIZE: how many bytes of DATA each stream may bring at first; 65 535 unless sent.
    public static func initialWindowSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 4, value: bytes) }
    /// SETTINGS_MAX_FRAME_SIZE: the longest payload the sender takes; 16 384 unless sent.
    public static func maxFrameSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 5, value: bytes) }
    /// SETTINGS_MAX_HEADER_LIST_SIZE: the largest list of fields the sender takes, uncompressed; advice only.
    public static func maxHeaderListSize(_ bytes: UInt32) -> HTTP2Setting { HTTP2Setting(identifier: 6, value: bytes) }

    /// What the client is told that sends it; nil for values that are allowed (RFC 9113 §6.5.2).
    var fault: HTTP2ErrorCode? {
        switch identifier {
        case Number.enablePush where value > 1: .protocolError
        case Number.initialWindowSize where value > Int32.max: .flowControlError
        case Number.maxFrameSize where !(1 << 14..<1 << 24).contains(value): .protocolError
        default: nil
        }
    }

    /// The numbers the server itself goes by.
    enum Number {
        static let enablePush: UInt16 = 2
        static let maxConcurrentStreams: UInt16 = 3
        static let initialWindowSize: UInt16 = 4
        static let maxFrameSize: UInt16 = 5
    }
}
