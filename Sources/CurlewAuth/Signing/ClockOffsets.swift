// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport

/// The offsets of servers' clocks from the local clock in seconds, positive for clocks that are ahead.
final class ClockOffsets: Sendable {
    private struct State {
        var offsets: [String: Int64] = [:]
        /// The origins, the one that was learned first at the front.
        var order: [String] = []
    }

    /// The maximum number of remembered origins.
    static let limit = 64
    /// The maximum difference in seconds that cannot be the reason of a refusal: AWS allows five minutes.
    static let tolerance: Int64 = 240
    /// The maximum accepted difference in seconds: a day, which covers every wrong time zone.
    ///
    /// A server with a greater difference has a wrong clock itself, or wants signatures that are valid at a later time.
    static let maximumOffset: Int64 = 86_400

    private let state = Lock(State())

    subscript(origin: String) -> Int64 { state.withLock { $0.offsets[origin] ?? 0 } }

    /// Stores the offset of a server's clock if it differs much from the offset that a request was signed with.
    ///
    /// - Parameters:
    ///   - server: The time of the server's clock.
    ///   - own: The time of the local clock.
    ///   - used: The offset that the request was signed with.
    /// - Returns: Whether the offset was stored, so that signing the request again could help; false when the
    ///   difference is within the tolerance, or greater than a day.
    func learn(_ origin: String, server: HTTPDate, own: HTTPDate, used: Int64) -> Bool {
        let offset = server.seconds - own.seconds
        guard abs(offset - used) > Self.tolerance, abs(offset) <= Self.maximumOffset else { return false }
        state.withLock { state in
            if state.offsets.updateValue(offset, forKey: origin) == nil { state.order.append(origin) }
            if state.order.count > Self.limit { state.offsets[state.order.removeFirst()] = nil }
        }
        return true
    }
}
