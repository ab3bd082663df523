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
        /// The security level of OpenSSL, 0 to 5; by default the system's, or 0 when a version below TLS 1.2 is allowed.
        ///
        /// Certificates with keys of less than 112 bits of security (RSA below 2048 bits) need a lower one than 2, those
        /// with signatures by SHA-1 or MD5 need 0.
        public var securityLevel: Int?
        /// The cipher suites up to TLS 1.2, as OpenSSL writes them: `ECDHE-ECDSA-AES128-GCM-SHA256:…`; OpenSSL's by
        /// default.
        public var ciphers: String?
        /// The cipher suites of TLS 1.3, as OpenSSL writes them: `TLS_AES_128_GCM_SHA256:…`; OpenSSL's by default.
        public var cipherSuites: String?
        /// The OCSP response that clients get who ask for one (RFC 6066 §8), DER; nil, the default, sends none.
        ///
        /// The bytes are sent as they are, whatever they are.
        public var staple: [UInt8]?
        /// Whose certificates a client must show one of; nil, the default, asks for none.
        public var clientAuthority: TestAuthority?
        /// Whether a client without a certificate is refused, if there is a `clientAuthority`; true by default.
        ///
        /// A certificate that is no good is refused in any case.
        public var requiresClientCertificate = true
        /// What clients' certificates are looked up in; none by default.
        ///
        /// With any, there has to be a current list of the issuer of a client's certificate.
        public var clientRevocationLists: [TestRevocationList] = []
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
