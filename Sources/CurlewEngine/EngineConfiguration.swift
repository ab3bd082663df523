// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// What a loop is told once, in plain values.
package struct EngineConfiguration: Sendable {
    package enum Version: Sendable { case automatic, http1Only, http2PriorKnowledge }
    package enum TLSVersion: Sendable { case v1_2, v1_3 }

    /// What TLS connections are made with, beside the versions.
    package struct TLS: Sendable {
        /// Cipher suites of TLS 1.2 and 1.3 in OpenSSL's syntax; nil leaves the choice to OpenSSL.
        package var ciphers: String?
        package var suites: String?
        /// What is named to servers instead of their hosts (RFC 6066 §3); an empty text names nothing.
        package var serverNames: [String: String] = [:]
        /// Whether it is negotiated what is spoken over TLS (ALPN, RFC 7301).
        package var negotiates = true
        package var keyLog: KeyLog?

        package init() {}

        /// Whether OpenSSL knows at least one of the cipher suites named.
        package var ciphersAreKnown: Bool { curlew_ciphers_are_known(ciphers, suites) }
    }

    package enum AddressOrder: Sendable { case asResolved, shuffled, roundRobin }

    /// What sockets are told; 0 leaves an option as the system has it.
    package struct TCP: Sendable, Equatable {
        /// Seconds.
        package var keepAliveIdle: Int32 = 0
        package var keepAliveInterval: Int32 = 0
        package var keepAliveCount: Int32 = 0
        /// Milliseconds.
        package var userTimeout: UInt32 = 0
        package var fastOpen = false

        package init() {}
    }

    package var version = Version.automatic
    package var minimumTLS = TLSVersion.v1_2
    package var maximumTLS: TLSVersion?
    package var tls = TLS()
    package var connectionsPerHost = 64
    package var connections = 512
    package var transfersPerHost = 512
    /// Transfers that share one HTTP/2 connection.
    package var streamsPerConnection = 100
    /// Nanoseconds after which a connection that nobody uses is closed.
    package var idleLifetime: UInt64 = 60_000_000_000
    /// Nanoseconds after which an idle connection of HTTP/1.1 gets no request that must not be sent twice: just below 5 s,
    /// after which many servers close theirs.
    package var staleAfter: UInt64 = 4_000_000_000
    /// Nanoseconds after which a connection is closed as soon as nobody uses it.
    package var connectionLifetime = Monotonic.never
    package var tcp = TCP()
    package var addressOrder = AddressOrder.asResolved
    /// Bytes a streamed body may hold before the transfer pauses, and where it goes on.
    package var highWater = 1 << 20
    package var lowWater = 512 << 10
    /// Bytes libcurl reads at a time.
    package var receiveBuffer = 64 << 10
    /// What all transfers together may send and receive.
    package var bandwidth = Bandwidth()
    /// Bytes of a streamed body that one transfer receives in a turn before the others have theirs.
    package var turn = 8 << 20
    /// Nanoseconds after which a turn of the loop is reported.
    package var slowTurn: UInt64 = 100_000_000
    /// Nanoseconds between two progress reports of one transfer.
    package var progressInterval: UInt64 = 50_000_000

    /// Who looks up host names.
    package var resolver = Resolver.system

    package init() {}

    /// Bytes libcurl reads at a time of a body that is streamed without TLS.
    var bulkBuffer: Int { max(receiveBuffer, min(4 * min(receiveBuffer, 64 << 10), highWater)) }

    /// How many transfers a host takes at once where each has a connection, and where they share connections.
    var placesPerHost: Int { min(transfersPerHost, connectionsPerHost) }
    var sharedPlacesPerHost: Int {
        let (all, isMore) = connectionsPerHost.multipliedReportingOverflow(by: streamsPerConnection)
        return isMore ? transfersPerHost : min(transfersPerHost, all)
    }
}
