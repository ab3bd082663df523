// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MockServer {
    /// How a server with an identity speaks TLS.
    public struct TLSOptions: Sendable {
        /// The lowest version it accepts; TLS 1.2 by default.
        public var minimumVersion = Version.v1_2
        /// The highest version it accepts; TLS 1.3 by default.
        public var maximumVersion = Version.v1_3
        /// Whether clients can resume sessions by ticket; true by default.
        public var allowsResumption = true
        /// Whose certificates a client must show one of; nil, the default, asks for none.
        public var clientAuthority: TestAuthority?
        /// What happens to a connection once its ClientHello has come whole (RFC 8446 §4.1.2), before anything is
        /// answered; nothing by default.
        ///
        /// `SocketFault.send` sends past TLS: the beginning of a ServerHello, or what is none. Unless a fault ends the
        /// connection the handshake goes on.
        public var onClientHello: [SocketFault] = []

        /// The defaults.
        public init() {}

        /// A version of TLS.
        public enum Version: Sendable, Hashable {
            /// TLS 1.0, obsolete (RFC 8996): for clients that must refuse it.
            case v1_0
            /// TLS 1.1, obsolete (RFC 8996): for clients that must refuse it.
            case v1_1
            /// TLS 1.2 (RFC 5246).
            case v1_2
            /// TLS 1.3 (RFC 8446).
            case v1_3
        }
    }
}
