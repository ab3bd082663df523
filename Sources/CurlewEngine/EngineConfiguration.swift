// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a loop is told once, in plain values.
package struct EngineConfiguration: Sendable {
    package enum Version: Sendable { case automatic, http1Only, http2PriorKnowledge }
    package enum TLSVersion: Sendable { case v1_2, v1_3 }

    package var version = Version.automatic
    package var minimumTLS = TLSVersion.v1_2
    package var maximumTLS: TLSVersion?
    package var connectionsPerHost = 64
    package var connections = 512
    package var transfersPerHost = 512
    /// Bytes a streamed body may hold before the transfer pauses, and where it goes on.
    package var highWater = 1 << 20
    package var lowWater = 512 << 10
    /// Bytes libcurl reads at a time.
    package var receiveBuffer = 64 << 10
    /// Nanoseconds after which a turn of the loop is reported.
    package var slowTurn: UInt64 = 100_000_000
    /// Nanoseconds between two progress reports of one transfer.
    package var progressInterval: UInt64 = 50_000_000

    /// Who looks up host names.
    package var resolver = Resolver.system

    package init() {}
}
