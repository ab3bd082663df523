// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// The traffic class of packets: a code point of differentiated services (DSCP, RFC 2474).
    ///
    /// Routers may treat packets of different classes differently. Many networks ignore or clear the class. Requests of
    /// different classes never share a connection.
    ///
    /// ```swift
    /// request.options.trafficClass = .background
    /// ```
    public struct TrafficClass: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
        /// The code point, from 0 to 63.
        public let rawValue: Int

        /// Creates a class from its code point.
        ///
        /// - Parameter rawValue: The code point, from 0 to 63. A request with any other number is invalid.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Best effort: the default (RFC 2474 §4.1).
        public static let standard = TrafficClass(rawValue: 0)
        /// Lower effort, for traffic that must not slow down other traffic (LE, RFC 8622).
        public static let background = TrafficClass(rawValue: 1)
        /// Large transfers that are not urgent (AF11, RFC 4594 §4.8).
        public static let bulk = TrafficClass(rawValue: 10)
        /// Responses for which a person or a program waits (AF21, RFC 4594 §4.7).
        public static let interactive = TrafficClass(rawValue: 18)
        /// Video that is played during the transfer (AF31, RFC 4594 §4.6).
        public static let streaming = TrafficClass(rawValue: 26)
        /// Voice (EF, RFC 3246).
        public static let voice = TrafficClass(rawValue: 46)

        /// The code point, such as "DSCP 46".
        public var description: String { "DSCP \(rawValue)" }

        var isValid: Bool { (0...63).contains(rawValue) }

        /// The byte of the IP header; the two lowest bits are for congestion notification.
        var byte: UInt8 { UInt8(truncatingIfNeeded: rawValue << 2) }
    }
}
