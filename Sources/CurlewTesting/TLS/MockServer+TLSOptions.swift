// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension MockServer {
    /// TLS options of a server with an identity.
    public struct TLSOptions: Sendable {
        /// The lowest TLS version that the server accepts; TLS 1.2 by default.
        public var minimumVersion = Version.v1_2
        /// The highest TLS version that the server accepts; TLS 1.3 by default.
        public var maximumVersion = Version.v1_3
        /// Whether clients can resume sessions by ticket; true by default.
        public var allowsResumption = true
        /// OpenSSL's security level, 0 to 5; by default the system's level, or 0 if a version below TLS 1.2 is allowed.
        ///
        /// Certificates whose keys have less than 112 bits of security (RSA below 2048 bits) need a level below 2.
        /// Certificates with SHA-1 or MD5 signatures need level 0.
        public var securityLevel: Int?
        /// The cipher suites up to TLS 1.2, as OpenSSL writes them: `ECDHE-ECDSA-AES128-GCM-SHA256:…`; OpenSSL's by
        /// default.
        public var ciphers: String?
        /// The cipher suites of TLS 1.3, as OpenSSL writes them: `TLS_AES_128_GCM_SHA256:…`; OpenSSL's by default.
        public var cipherSuites: String?
        /// The OCSP response for clients that request it (RFC 6066 §8), DER; nil, the default, sends no response.
        ///
        /// The server sends the bytes unchecked.
        public var ocspResponse: [UInt8]?
        /// The authority that must have issued the client's certificate; nil, the default, requests no certificate.
        public var clientAuthority: TestAuthority?
        /// Whether the server rejects a client without a certificate if `clientAuthority` is set; true by default.
        ///
        /// The server always rejects an invalid certificate.
        public var requiresClientCertificate = true
        /// The revocation lists against which the server checks client certificates; empty by default.
        ///
        /// If the array is not empty, it must contain a current list from the issuer of the client's certificate.
        public var clientRevocationLists: [TestRevocationList] = []
        /// The faults that happen once a whole ClientHello has arrived (RFC 8446 §4.1.2), before the server responds.
        ///
        /// Empty by default. `SocketFault.send` sends bytes outside TLS, such as the beginning of a ServerHello or
        /// garbage. The handshake continues unless a fault ends the connection.
        public var onClientHello: [SocketFault] = []

        /// Creates the default options.
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
