// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A loopback address to listen on.
public enum LoopbackAddress: Sendable, Hashable {
    /// 127.0.0.1
    case v4
    /// 127.0.0.n, one of the many loopback addresses of Linux, for tests in which a name has several addresses.
    case v4Host(UInt8)
    /// ::1
    case v6

    /// The address as a host in a URL.
    var host: String {
        switch self {
        case .v4: "127.0.0.1"
        case .v4Host(let number): "127.0.0.\(number)"
        case .v6: "[::1]"
        }
    }

    /// The last number of an IPv4 address; nil for IPv6.
    var v4Number: UInt8? {
        switch self {
        case .v4: 1
        case .v4Host(let number): number
        case .v6: nil
        }
    }
}
