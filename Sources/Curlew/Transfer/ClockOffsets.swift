// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// How far the clocks of some servers are ahead of ours, in seconds.
final class ClockOffsets: Sendable {
    private struct State {
        var offsets: [String: Int64] = [:]
        /// The origins, the one that was learned first in front.
        var order: [String] = []
    }

    /// How many origins are remembered.
    static let limit = 64
    /// Clocks that differ by no more are not why a server refuses, in seconds: AWS allows five minutes.
    static let tolerance: Int64 = 240
    /// The most that a clock may differ, in seconds: a day has room for each wrong time zone.
    ///
    /// A server that says more has a wrong clock itself, or wants signatures that are valid at a later time.
    static let farthest: Int64 = 86_400

    private let state = Lock(State())

    subscript(origin: String) -> Int64 { state.withLock { $0.offsets[origin] ?? 0 } }

    /// Takes note of the time by a server's clock when that is far from what a request was signed with.
    ///
    /// - Parameters:
    ///   - server: The time by the server.
    ///   - own: The time by our clock.
    ///   - used: The offset that the request was signed with.
    /// - Returns: Whether it is far, though not too far, so that signing once more could help.
    func learn(_ origin: String, server: HTTPDate, own: HTTPDate, used: Int64) -> Bool {
        let offset = server.seconds - own.seconds
        guard abs(offset - used) > Self.tolerance, abs(offset) <= Self.farthest else { return false }
        state.withLock { state in
            if state.offsets.updateValue(offset, forKey: origin) == nil { state.order.append(origin) }
            if state.order.count > Self.limit { state.offsets[state.order.removeFirst()] = nil }
        }
        return true
    }
}
