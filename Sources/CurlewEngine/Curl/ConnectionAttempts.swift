// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// The endpoints of a host that one connection attempts, in order and with a delay between them (RFC 8305).
///
/// libcurl attempts one address of each family at a time, and calls the engine before each attempt. The engine then
/// gives libcurl the next endpoint of this value. If an attempt takes longer than the delay, the engine attempts the
/// next endpoint in parallel, with a socket of its own.
struct ConnectionAttempts {
    private struct Entry {
        let endpoint: SocketAddress
        /// The number of bytes of the address.
        let family: Int
        var isAttempted = false
    }

    private var entries: [Entry]
    private let delay: UInt64
    /// The family of the last attempted address: its number of bytes.
    private var lastFamily = 0
    /// The time at which the engine attempts the next endpoint; `Monotonic.never` after the last one.
    private(set) var nextAt = Monotonic.never

    /// - Parameters:
    ///   - endpoints: The endpoints in the order of the look-up.
    ///   - order: The order within each family; the order of the families does not change.
    ///   - turn: The number of earlier connections to the origin.
    ///   - delay: Nanoseconds between two attempts; nil if only libcurl makes attempts.
    /// - Returns: Nil if libcurl can use its own order and ports.
    init?(_ endpoints: [SocketAddress], _ order: EngineConfiguration.AddressOrder, turn: Int, delay: UInt64?) {
        guard endpoints.count > 1 || endpoints.contains(where: { $0.port != nil }) else { return nil }
        var places = endpoints
        for family in [4, 16] where order != .asResolved {
            let indices = endpoints.indices.filter { endpoints[$0].bytes.count == family }
            guard indices.count > 1 else { continue }
            let first = turn % indices.count
            let source = order == .shuffled ? indices.shuffled() : Array(indices[first...] + indices[..<first])
            for (place, index) in zip(indices, source) { places[place] = endpoints[index] }
        }
        entries = places.map { Entry(endpoint: $0, family: $0.bytes.count) }
        self.delay = delay ?? Monotonic.never
    }

    /// Returns the endpoint for an attempt of libcurl; nil if the host has no address of the family.
    ///
    /// - Parameters:
    ///   - family: The number of bytes of libcurl's address.
    ///   - running: The endpoints that the engine attempts; libcurl takes one over when no other is left.
    mutating func next(_ family: Int, running: [SocketAddress], now: UInt64) -> SocketAddress? {
        let own = entries.indices.filter { entries[$0].family == family }
        // After all endpoints have failed, libcurl repeats the last one, whose failure it then reports.
        guard
            let index = own.first(where: { !entries[$0].isAttempted })
                ?? own.first(where: { running.contains(entries[$0].endpoint) }) ?? own.last
        else { return nil }
        return attempt(index, now)
    }

    /// Returns the endpoint that the engine attempts now; nil after the last one.
    mutating func nextBesideLibcurl(now: UInt64) -> SocketAddress? {
        let left = entries.indices.filter { !entries[$0].isAttempted }
        let index = left.first { entries[$0].family != lastFamily } ?? left.first
        return index.map { attempt($0, now) }
    }

    private mutating func attempt(_ index: Int, _ now: UInt64) -> SocketAddress {
        entries[index].isAttempted = true
        lastFamily = entries[index].family
        let (next, isNever) = now.addingReportingOverflow(delay)
        nextAt = isNever || entries.allSatisfy(\.isAttempted) ? Monotonic.never : next
        return entries[index].endpoint
    }

    /// Makes the next attempt due, because the last one has failed (RFC 8305 §5).
    mutating func hurry(now: UInt64) { if !entries.allSatisfy(\.isAttempted) { nextAt = min(nextAt, now) } }
}
