// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A loopback address to listen on.
public enum LoopbackAddress: Sendable, Hashable {
    /// 127.0.0.1
    case v4
    /// ::1
    case v6
}
