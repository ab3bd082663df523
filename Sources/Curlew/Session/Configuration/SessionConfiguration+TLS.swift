// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Session.Configuration {
    /// The TLS settings of connections; trust evaluators decide which servers are trusted.
    public struct TLS: Sendable, Hashable {
        /// A TLS version, ordered by age.
        public enum Version: String, Sendable, Hashable, Codable, Comparable, CaseIterable {
            /// TLS 1.2 (RFC 5246).
            case v1_2 = "1.2"
            /// TLS 1.3 (RFC 8446).
            case v1_3 = "1.3"

            /// Orders the older version first.
            public static func < (lhs: Version, rhs: Version) -> Bool {
                lhs.rawValue < rhs.rawValue
            }
        }

        /// The oldest version accepted; TLS 1.2 unless set (RFC 8996 forbids older ones).
        public var minimumVersion: Version
        /// The newest version offered; nil, the default, for the newest available.
        public var maximumVersion: Version?
        /// Whether requests without TLS, including redirects, fail with `.invalidRequest`; false unless set.
        public var isRequired: Bool
        /// The cipher suites offered for TLS 1.2, in OpenSSL's format (`openssl ciphers`), such as
        /// "ECDHE+AESGCM:ECDHE+CHACHA20"; nil, the default, for OpenSSL's own choice.
        ///
        /// Suites without certificates or encryption are never offered.
        public var ciphers: String?
        /// The cipher suites offered for TLS 1.3, such as "TLS_AES_128_GCM_SHA256"; nil, the default, for OpenSSL's own
        /// choice.
        public var cipherSuites: String?
        /// Whether the protocol over TLS is negotiated (ALPN, RFC 7301); true unless set.
        ///
        /// Without negotiation it is HTTP/1.1 unless `http.version` sets HTTP/2.
        public var negotiatesProtocol: Bool
        /// The server names sent instead of the URL's host (SNI, RFC 6066 §3), by host; an empty name sends no name.
        ///
        /// Certificates must nevertheless match the host of the URL.
        public var serverNames: [String: String]
        /// A file to which the secrets of all TLS connections are appended, for programs such as Wireshark; nil, the
        /// default, for no file.
        ///
        /// Every reader of the file can decrypt everything that is sent and received. Curlew creates it for its
        /// owner only. An existing file must be a regular file of this user, not a symbolic link, and not readable or
        /// writable by others. If the file cannot be written, transfers continue without it, and
        /// ``Session/Event/keyLogNotWritten(path:reason:)`` gives the reason. The path is neither encoded nor decoded,
        /// and `SSLKEYLOGFILE` is ignored.
        public var keyLogFile: String?

        /// Creates settings; each has its default unless given.
        public init(
            minimumVersion: Version = .v1_2, maximumVersion: Version? = nil, isRequired: Bool = false,
            ciphers: String? = nil, cipherSuites: String? = nil, negotiatesProtocol: Bool = true,
            serverNames: [String: String] = [:], keyLogFile: String? = nil
        ) {
            self.minimumVersion = minimumVersion
            self.maximumVersion = maximumVersion
            self.isRequired = isRequired
            self.ciphers = ciphers
            self.cipherSuites = cipherSuites
            self.negotiatesProtocol = negotiatesProtocol
            self.serverNames = serverNames
            self.keyLogFile = keyLogFile
        }

        /// The rule that the first invalid member breaks, except for the ciphers; nil when all are valid.
        var firstBrokenRule: String? {
            if let maximumVersion, maximumVersion < minimumVersion {
                return "tls.maximumVersion must not be below tls.minimumVersion"
            }
            for (host, name) in serverNames {
                guard HostName.key(host) != nil else {
                    return "“\(host.escapingControls)” in tls.serverNames is no host"
                }
                guard name.isEmpty || HostName.key(name) != nil && !HostName.isAddress(name) else {
                    return "“\(name.escapingControls)” in tls.serverNames is no host name"
                }
            }
            if cipherSuites?.isEmpty == true { return "tls.cipherSuites must not be empty" }
            if ciphers != nil || cipherSuites != nil, !EngineConfiguration.TLS(self).ciphersAreKnown {
                return "OpenSSL knows no cipher of tls.ciphers or tls.cipherSuites"
            }
            if keyLogFile?.isEmpty == true { return "tls.keyLogFile must not be empty" }
            if keyLogFile?.utf8.contains(0) == true { return "tls.keyLogFile must not contain a NUL" }
            return nil
        }
    }
}

extension Session.Configuration.TLS: Codable {
    enum Keys: CodingKey, CaseIterable {
        case minimumVersion, maximumVersion, isRequired, ciphers, cipherSuites, negotiatesProtocol, serverNames
    }

    /// Decodes settings; missing members take their defaults, and ``keyLogFile`` is ignored.
    /// - Throws: `DecodingError.dataCorrupted` for versions other than "1.2" and "1.3".
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        self.init()
        minimumVersion = try container.decodeIfPresent(Version.self, forKey: .minimumVersion) ?? minimumVersion
        maximumVersion = try container.decodeIfPresent(Version.self, forKey: .maximumVersion)
        isRequired = try container.decodeIfPresent(Bool.self, forKey: .isRequired) ?? isRequired
        ciphers = try container.decodeIfPresent(String.self, forKey: .ciphers)
        cipherSuites = try container.decodeIfPresent(String.self, forKey: .cipherSuites)
        negotiatesProtocol =
            try container.decodeIfPresent(Bool.self, forKey: .negotiatesProtocol) ?? negotiatesProtocol
        serverNames = try container.decodeIfPresent([String: String].self, forKey: .serverNames) ?? serverNames
    }

    /// Encodes everything but ``keyLogFile``: a file of settings must not be able to expose all secrets.
    /// - Throws: The errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(minimumVersion, forKey: .minimumVersion)
        try container.encode(maximumVersion, forKey: .maximumVersion)
        try container.encode(isRequired, forKey: .isRequired)
        try container.encode(ciphers, forKey: .ciphers)
        try container.encode(cipherSuites, forKey: .cipherSuites)
        try container.encode(negotiatesProtocol, forKey: .negotiatesProtocol)
        try container.encode(serverNames, forKey: .serverNames)
    }
}

// MARK: For the engine

extension EngineConfiguration.TLS {
    init(_ tls: Session.Configuration.TLS) {
        self.init()
        minimum = Version(sameAs: tls.minimumVersion)
        maximum = tls.maximumVersion.map { Version(sameAs: $0) }
        // Always exclude suites without authentication or encryption: a server without a certificate would escape all
        // trust evaluation.
        ciphers = tls.ciphers.map { "\($0):!aNULL:!eNULL" }
        suites = tls.cipherSuites
        serverNames = Dictionary(
            tls.serverNames.map { (HostName.key($0) ?? $0, HostName.key($1) ?? $1) },
            uniquingKeysWith: { first, _ in first })
        negotiates = tls.negotiatesProtocol
    }
}
