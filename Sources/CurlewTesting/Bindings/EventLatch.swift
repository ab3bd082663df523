// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import Glibc

/// A one-way switch that `poll` can wait for: an eventfd that is written once and never read.
final class EventLatch: Sendable {
    let descriptor: CInt

    init() {
        descriptor = curlew_make_eventfd()
        precondition(descriptor >= 0, "No descriptor is left for an eventfd (errno \(errno)).")
    }

    deinit {
        close(descriptor)
    }

    func set() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, MemoryLayout<UInt64>.size)
    }

    var isSet: Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) == 1
    }
}

/// The reason why a connection's thread stops serving its connection.
enum Disconnect: Error {
    /// `MockServer.stop()` was called.
    case stopped
    /// The client closed or reset the connection.
    case peerClosed
    /// TLS failed, or the script ended the connection.
    case ended
}

/// The waits of a connection's thread.
///
/// Every wait ends when the server stops.
struct SocketWaiter {
    let socket: CInt
    let stop: EventLatch

    /// POLLRDHUP, which Glibc's module defines only under _GNU_SOURCE.
    private static let peerHangUp: Int16 = 0x2000

    func untilReadable() throws {
        try untilSocket(Int16(POLLIN))
    }

    func untilWritable() throws {
        try untilSocket(Int16(POLLOUT))
    }

    /// Waits until the latch is set; throws if the client disconnects first.
    func until(_ latch: EventLatch) throws {
        try untilQuiet(latch: latch.descriptor, deadline: nil)
    }

    /// Waits for the given time; throws if the client disconnects first.
    func pause(_ duration: Duration) throws {
        try untilQuiet(latch: -1, deadline: ContinuousClock.now + duration)
    }

    /// Waits until the socket is readable, the socket is writable (only with `isWriting`), a latch is set or the
    /// deadline has passed.
    ///
    /// The method does not report which of these events ended the wait.
    func untilAny(isWriting: Bool, latches: [EventLatch], deadline: ContinuousClock.Instant?) throws {
        let events = Int16(POLLIN) | (isWriting ? Int16(POLLOUT) : 0)
        var entries = [
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: events, revents: 0),
        ]
        entries += latches.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        let left = deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
        let count = poll(&entries, nfds_t(entries.count), left.map(Self.milliseconds) ?? -1)
        if count > 0, entries[0].revents != 0 { throw Disconnect.stopped }
    }

    private func untilSocket(_ events: Int16) throws {
        var entries = [
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: events, revents: 0),
        ]
        while true {
            let count = poll(&entries, 2, -1)
            if entries[0].revents != 0, count > 0 { throw Disconnect.stopped }
            if count > 0 { return }
        }
    }

    private func untilQuiet(latch: CInt, deadline: ContinuousClock.Instant?) throws {
        var entries = [
            pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: latch, events: Int16(POLLIN), revents: 0),
            pollfd(fd: socket, events: Self.peerHangUp, revents: 0),
        ]
        while true {
            let left = deadline.map { ContinuousClock.now.duration(to: $0) }
            if let left, left <= .zero { return }
            let count = poll(&entries, 3, left.map(Self.milliseconds) ?? -1)
            guard count > 0 else { continue }
            if entries[0].revents != 0 { throw Disconnect.stopped }
            if entries[1].revents != 0 { return }
            if entries[2].revents != 0 { throw Disconnect.peerClosed }
        }
    }

    /// Returns the duration in milliseconds, rounded up so that a wait never spins on a remainder below one
    /// millisecond.
    private static func milliseconds(_ duration: Duration) -> CInt {
        let parts = duration.components
        let whole = min(parts.seconds, 86_400) * 1000
        return CInt(whole + (parts.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}
