// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension SessionConfiguration {
    /// How many connections and transfers there may be, and how large responses.
    public struct Limits: Sendable, Hashable {
        /// Connections open to one host at a time, over all trusts; 64 unless set.
        public var connectionsPerHost: Int
        /// Connections open at a time, over all hosts and trusts; 512 unless set.
        public var connections: Int
        /// Transfers running to one host at a time over shared HTTP/2 connections, whatever their trust; 512 unless
        /// set.
        ///
        /// It is never more than `connectionsPerHost` times `streamsPerConnection`. A host that has not answered by HTTP/2
        /// gets no more than `connectionsPerHost`, and before its first answer over https no more than
        /// `streamsPerConnection` either. The rest waits in line.
        public var transfersPerHost: Int
        /// Transfers that share one HTTP/2 connection before another is opened, up to `connectionsPerHost`; 100 unless set.
        ///
        /// Fewer spread many transfers over more connections, and so over the servers behind one name. A server that
        /// allows fewer streams decides for its connections.
        public var streamsPerConnection: Int
        /// How long a connection stays open that nobody uses; 60 s unless set.
        ///
        /// That is a little less than common servers wait (nginx 75 s): who closes first does not have to find out with
        /// a request that the other has. Zero closes each connection after its use.
        ///
        /// A request that must not be sent twice, such as a POST, closes the HTTP/1.1 connections to its origin that were
        /// idle for 4 s or longer, and uses another connection, because many servers close idle connections after 5 s.
        /// With ``ConnectionUse/resending`` the request reuses them.
        public var idleConnectionLifetime: Duration
        /// How long after its opening a connection is closed, as soon as nobody uses it; nil, the default, for never.
        ///
        /// A connection that transfers share without a pause grows older.
        public var connectionLifetime: Duration?
        /// How many decoded bytes of a body calls that return it whole collect; 64 MiB unless set.
        public var responseBody: ByteCount
        /// How many bytes the head of a response may have, together with informational heads and trailers; 256 KiB
        /// unless set.
        ///
        /// libcurl takes no single line of more than 100 KiB (4 KiB in trailers) and, since 8.3 and in Debian's 7.88,
        /// no head of more than 300 KiB.
        public var responseHead: ByteCount
        /// How many fields the head of a response may have, with its informational heads and its trailers; 1000 unless
        /// set.
        public var responseFields: Int
        /// How many decoded bytes there may be for one of a compressed body, looked at above 1 MiB; nil, the default,
        /// for any number.
        ///
        /// Honest bodies can reach a thousand. Collected bodies are bounded by `responseBody` in any case.
        public var decompressionRatio: Int?
        /// How many bytes of bodies all transfers of the session together send and receive in a second; any number unless
        /// set.
        ///
        /// Those that wait stand in one line, and each gets a little at a time.
        public var bandwidth: BandwidthLimit

        /// Limits, each with its default.
        public init(
            connectionsPerHost: Int = 64, connections: Int = 512, transfersPerHost: Int = 512,
            streamsPerConnection: Int = 100, idleConnectionLifetime: Duration = .seconds(60),
            connectionLifetime: Duration? = nil,
            responseBody: ByteCount = .mebibytes(64), responseHead: ByteCount = .kibibytes(256),
            responseFields: Int = 1000, decompressionRatio: Int? = nil,
            bandwidth: BandwidthLimit = BandwidthLimit()
        ) {
            self.connectionsPerHost = connectionsPerHost
            self.connections = connections
            self.transfersPerHost = transfersPerHost
            self.streamsPerConnection = streamsPerConnection
            self.idleConnectionLifetime = idleConnectionLifetime
            self.connectionLifetime = connectionLifetime
            self.responseBody = responseBody
            self.responseHead = responseHead
            self.responseFields = responseFields
            self.decompressionRatio = decompressionRatio
            self.bandwidth = bandwidth
        }
    }

    /// Which protocol versions are spoken, and whether bodies are compressed.
    public struct HTTP: Sendable, Hashable {
        /// A way to choose the protocol version.
        public enum Version: String, Sendable, Hashable, Codable, CaseIterable {
            /// HTTP/2 over TLS when the server agrees (ALPN, RFC 7301), else HTTP/1.1.
            case automatic
            /// HTTP/1.1 always.
            case http1Only
            /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
            case http2PriorKnowledge
        }

        /// How the version is chosen; automatically unless set.
        public var version: Version
        /// Which bodies are sent only after the server has said that it wants them; from 1 MiB unless set.
        public var expectContinue: ExpectContinue
        /// How long the server may take to say so before the body is sent anyway; 1 s unless set.
        public var expectContinueTimeout: Duration
        /// What happens to compressed responses; they are offered and undone unless set.
        public var decompression: Decompression
        /// Whether request bodies are compressed; they are not unless set.
        public var compression: RequestCompression

        /// The choices, each with its default.
        public init(
            version: Version = .automatic, expectContinue: ExpectContinue = .above(.mebibytes(1)),
            expectContinueTimeout: Duration = .seconds(1), decompression: Decompression = .automatic,
            compression: RequestCompression = .off
        ) {
            self.version = version
            self.expectContinue = expectContinue
            self.expectContinueTimeout = expectContinueTimeout
            self.decompression = decompression
            self.compression = compression
        }
    }

    /// How much data is buffered for a transfer.
    public struct Buffers: Sendable, Hashable, Encodable {
        /// When this much waits to be read, the transfer is paused; 1 MiB unless set.
        public var highWater: ByteCount
        /// When a paused transfer has no more than this left to be read, it goes on; 512 KiB unless set.
        public var lowWater: ByteCount
        /// How much is read from a socket at once; 64 KiB unless set.
        ///
        /// For bodies that are streamed without TLS it is up to four times as much.
        public var receive: ByteCount

        /// Sizes, each with its default.
        public init(
            highWater: ByteCount = .mebibytes(1), lowWater: ByteCount = .kibibytes(512),
            receive: ByteCount = .kibibytes(64)
        ) {
            self.highWater = highWater
            self.lowWater = lowWater
            self.receive = receive
        }
    }
}
