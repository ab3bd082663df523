// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

/// The settings of a loop, in plain values that never change after its creation.
package struct EngineConfiguration: Sendable {
    package enum Version: String, Sendable, CaseIterable {
        case automatic, http1Only, http2PriorKnowledge, http3

        /// Whether client and server agree on the version during the TLS handshake.
        var isNegotiated: Bool { self == .automatic || self == .http3 }
    }

    package enum AddressOrder: String, Sendable, CaseIterable { case asResolved, shuffled, roundRobin }

    package var version = Version.automatic
    package var tls = TLS()
    package var connectionsPerHost = 64
    package var connections = 512
    package var transfersPerHost = 512
    /// Transfers that share one HTTP/2 connection.
    package var streamsPerConnection = 100
    /// Nanoseconds after which an unused connection is closed.
    package var idleLifetime: UInt64 = 60_000_000_000
    /// Nanoseconds after which an idle HTTP/1.1 connection is no longer used for requests that must not be sent twice:
    /// just below 5 s, after which many servers close their connections.
    package var staleAfter: UInt64 = 4_000_000_000
    /// Nanoseconds after which a connection is closed as soon as it is idle.
    package var connectionLifetime = Monotonic.never
    /// Socket options; 0 keeps the default of the system.
    private(set) var tcp = curlew_tcp_options()
    package var addressOrder = AddressOrder.asResolved
    /// Nanoseconds between two attempts to connect to the addresses of a host (RFC 8305 §5).
    package var attemptDelay: UInt64 = 250_000_000
    package var socketRules = SocketRules()
    /// The number of requests after which a connection is closed as soon as it is idle.
    package var requestsPerConnection = Int.max
    /// The PING frames on silent HTTP/2 connections; nil for none.
    package var pings: Pings?
    /// The number of buffered bytes of a streamed body at which the transfer pauses, and at which it resumes.
    package var highWater = 1 << 20
    package var lowWater = 512 << 10
    /// Bytes libcurl reads at a time.
    package var receiveBuffer = 64 << 10
    /// The bandwidth limit of all transfers together, with its buckets as they are at the start of the loop.
    package var throttle = Throttle()
    /// Maximum bytes of a streamed body that one transfer receives in a turn before other transfers continue.
    package var turn = 8 << 20
    /// Nanoseconds after which a turn of the loop is reported as slow.
    package var slowTurn: UInt64 = 100_000_000
    /// Nanoseconds between two progress reports of one transfer.
    package var progressInterval: UInt64 = 50_000_000

    /// Looks up host names.
    package var resolver = Resolver.system

    /// The time of silence after which a PING is sent, and the limit for the answer, in nanoseconds.
    package struct Pings: Sendable {
        package var interval: UInt64
        package var limit: UInt64

        package init(interval: UInt64, limit: UInt64) {
            self.interval = interval
            self.limit = limit
        }
    }

    package init() {}

    /// Sets the options of sockets.
    ///
    /// - Parameters:
    ///   - keepAlive: The probes on silent connections, in seconds; nil for no probes.
    ///   - userTimeout: Milliseconds; nil for the default of the system.
    ///   - fastOpen: Whether a request may be sent in the first packet of a connection.
    package mutating func setTCP(
        keepAlive: (idle: Int64, interval: Int64, count: Int)?, userTimeout: UInt64?, fastOpen: Bool
    ) {
        tcp = curlew_tcp_options(
            keep_idle: CInt(clamping: keepAlive?.idle ?? 0), keep_interval: CInt(clamping: keepAlive?.interval ?? 0),
            keep_count: CInt(clamping: keepAlive?.count ?? 0), user_timeout: CUnsignedInt(clamping: userTimeout ?? 0),
            fast_open: fastOpen)
    }

    /// Bytes that libcurl reads at a time for a body that is streamed without TLS.
    var bulkBuffer: Int { max(receiveBuffer, min(4 * min(receiveBuffer, 64 << 10), highWater)) }

    /// The number of transfers that a host runs at once: with one connection each, and with shared connections.
    var slotsPerHost: Int { min(transfersPerHost, connectionsPerHost) }
    var sharedSlotsPerHost: Int {
        let (all, isMore) = connectionsPerHost.multipliedReportingOverflow(by: streamsPerConnection)
        return isMore ? transfersPerHost : min(transfersPerHost, all)
    }
}
