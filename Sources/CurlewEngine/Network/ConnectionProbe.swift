// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport
internal import Glibc

/// Opens TCP connections to find out whether a server accepts them.
package enum ConnectionProbe {
    /// Returns whether one of the addresses accepts a connection; closes all connections.
    ///
    /// A separate thread connects to all addresses at the same time. The cancellation of the task has no effect.
    ///
    /// - Parameters:
    ///   - addresses: At most 16 addresses of 4 or 16 bytes; the others are ignored.
    ///   - port: The port.
    ///   - limit: The time for all addresses together, in nanoseconds.
    package static func reaches(_ addresses: [[UInt8]], port: UInt16, within limit: UInt64) async -> Bool {
        if addresses.isEmpty { return false }
        return await withUnsafeContinuation { (continuation: UnsafeContinuation<Bool, Never>) in
            let failure = startThread("curlew-probe") {
                continuation.resume(returning: connect(addresses.prefix(16), port, Monotonic.now() &+ limit))
            }
            if failure != 0 { continuation.resume(returning: false) }
        }
    }

    private static func connect(_ addresses: ArraySlice<[UInt8]>, _ port: UInt16, _ deadline: UInt64) -> Bool {
        var waiting: [pollfd] = []
        defer { for entry in waiting { close(entry.fd) } }
        for address in addresses {
            let descriptor = curlew_stream_socket(CInt(address.count))
            guard descriptor >= 0 else { continue }
            if curlew_connect(descriptor, address, CInt(address.count), port) == 0 {
                waiting.append(pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0))
            } else {
                close(descriptor)
            }
        }
        while !waiting.isEmpty {
            let now = Monotonic.now()
            if now >= deadline { return false }
            poll(&waiting, nfds_t(waiting.count), CInt(clamping: (deadline - now + 999_999) / 1_000_000))
            for (index, entry) in waiting.enumerated().reversed() where entry.revents != 0 {
                if curlew_socket_error(entry.fd) == 0 { return true }
                close(entry.fd)
                waiting.remove(at: index)
            }
        }
        return false
    }
}
