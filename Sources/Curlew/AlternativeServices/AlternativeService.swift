// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// Alternative services (RFC 7838): the field `Alt-Svc`, the services that a session knows, and the interceptor that
// stores them.

internal import CurlewSupport
public import FoundationEssentials

extension Session {
    /// A protocol, host and port at which a server offers the same resources (RFC 7838 §2).
    ///
    /// Servers announce their services in the field `Alt-Svc`.
    public struct AlternativeService: Sendable, Hashable, CustomStringConvertible {
        /// The name of the protocol in TLS (ALPN, RFC 7301), such as "h3"; percent escapes are decoded.
        public let protocolID: String
        /// The host in lower case, an IPv6 address without brackets; the host of the URL if the field omits it.
        public let host: String
        /// The port, from 1 to 65535.
        public let port: Int
        /// The time at which the service expires: at most a year after the response, and 24 hours after it if the field
        /// has no lifetime (RFC 7838 §3.1).
        public let expires: Date
        /// Whether the service remains valid after a change of the network: the field has `persist=1` (RFC 7838 §3.1).
        public let isPersistent: Bool

        /// The protocol, the host and the port, such as "h3 alt.example.com:443".
        public var description: String { "\(protocolID.escapingControls) \(authority(host, port))" }
    }

    /// Returns the alternative services of a server that have not expired, in the order of the server.
    ///
    /// The session reads them from the field `Alt-Svc` of https responses, if the trust evaluator checks the identity
    /// of the server (RFC 7838 §2.1). It keeps them in memory, for at most 1000 servers with 16 services each. A new
    /// field replaces all services of its server, and the value `clear` removes them (RFC 7838 §3). Copies of the
    /// session do not share them. Any thread may call the method.
    ///
    /// - Parameter url: A URL of the server; its path and query have no effect.
    /// - Returns: The services; empty for an unknown server, an http URL and an invalid URL.
    public nonisolated func alternativeServices(of url: String) -> [AlternativeService] {
        core.alternativeServices.services(of: url)
    }
}
