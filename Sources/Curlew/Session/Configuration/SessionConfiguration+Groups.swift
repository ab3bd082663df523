// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Session.Configuration {
    /// Limits for the numbers of connections and transfers, and for the sizes of responses.
    public struct Limits: Sendable, Hashable {
        /// The number of connections open to one host at a time, over all trust evaluators; 64 unless set.
        public var connectionsPerHost: Int
        /// The number of connections open at a time, over all hosts and trust evaluators; 512 unless set.
        public var connections: Int
        /// The number of transfers that run to one host at a time over shared HTTP/2 connections, over all trust
        /// evaluators; 512 unless set.
        ///
        /// The effective limit is at most `connectionsPerHost` times `streamsPerConnection`. A host that has not
        /// responded over HTTP/2 gets at most `connectionsPerHost` transfers, and before its first response over https
        /// also at most `streamsPerConnection`. The other transfers wait in the queue.
        public var transfersPerHost: Int
        /// The number of transfers that share one HTTP/2 connection before another connection is opened, up to
        /// `connectionsPerHost`; 100 unless set.
        ///
        /// A smaller number spreads many transfers over more connections, and so over the servers behind one name. If a
        /// server allows fewer streams, its limit applies to its connections.
        public var streamsPerConnection: Int
        /// How long an unused connection stays open; 60 s unless set.
        ///
        /// The default is a little less than the timeout of common servers (nginx 75 s): if the client closes first, no
        /// request meets a connection that the server has closed. Zero closes each connection after its use.
        ///
        /// A request that must not be sent twice, such as a POST, closes the HTTP/1.1 connections to its origin that
        /// were idle for 4 s or longer, and uses another connection, because many servers close idle connections after
        /// 5 s. With ``Request/ConnectionUse/resending`` the request reuses them.
        public var idleConnectionLifetime: Duration
        /// The age at which a connection is closed, as soon as it is unused; nil, the default, for no limit.
        ///
        /// A connection that transfers share without a pause exceeds this age.
        public var connectionLifetime: Duration?
        /// The maximum number of requests on a connection; nil, the default, for no limit.
        ///
        /// After this number of requests, the connection is closed when no transfer uses it. If a load balancer selects
        /// a server for each connection, this limit distributes requests among the servers.
        public var requestsPerConnection: Int?
        /// How many decoded bytes of a body are collected by calls that return the whole body; 64 MiB unless set.
        public var responseBody: ByteCount
        /// How many bytes the head of a response may have, together with informational heads and trailers; 256 KiB
        /// unless set.
        ///
        /// libcurl accepts no single line of more than 100 KiB (4 KiB in trailers) and, since 8.3 and in Debian's 7.88,
        /// no head of more than 300 KiB.
        public var responseHead: ByteCount
        /// How many fields the head of a response may have, with its informational heads and its trailers; 1000 unless
        /// set.
        public var responseFields: Int
        /// The ratio of decoded to compressed bytes that a body may reach, checked above 1 MiB; nil, the default, for
        /// no limit.
        ///
        /// Legitimate bodies can reach a ratio of a thousand. Collected bodies are bounded by `responseBody` in any
        /// case.
        public var decompressionRatio: Int?
        /// How many bytes of bodies all transfers of the session together send and receive per second; unlimited unless
        /// set.
        ///
        /// Waiting transfers share one queue, and each gets a small amount at a time.
        public var bandwidth: Request.BandwidthLimit

        /// Creates limits; each has its default unless given.
        public init(
            connectionsPerHost: Int = 64, connections: Int = 512, transfersPerHost: Int = 512,
            streamsPerConnection: Int = 100, idleConnectionLifetime: Duration = .seconds(60),
            connectionLifetime: Duration? = nil, requestsPerConnection: Int? = nil,
            responseBody: ByteCount = .defaultBodyLimit, responseHead: ByteCount = .kibibytes(256),
            responseFields: Int = 1000, decompressionRatio: Int? = nil,
            bandwidth: Request.BandwidthLimit = Request.BandwidthLimit()
        ) {
            self.connectionsPerHost = connectionsPerHost
            self.connections = connections
            self.transfersPerHost = transfersPerHost
            self.streamsPerConnection = streamsPerConnection
            self.idleConnectionLifetime = idleConnectionLifetime
            self.connectionLifetime = connectionLifetime
            self.requestsPerConnection = requestsPerConnection
            self.responseBody = responseBody
            self.responseHead = responseHead
            self.responseFields = responseFields
            self.decompressionRatio = decompressionRatio
            self.bandwidth = bandwidth
        }
    }

    /// The HTTP version, and the compression of bodies.
    public struct HTTP: Sendable, Hashable {
        /// A way to choose the protocol version.
        public enum Version: String, Sendable, Hashable, Codable, CaseIterable {
            /// HTTP/2 over TLS if the server agrees (ALPN, RFC 7301), otherwise HTTP/1.1.
            case automatic
            /// HTTP/1.1 always.
            case http1Only
            /// HTTP/2 from the first byte, also without TLS (RFC 9113 §3.3).
            case http2PriorKnowledge
            /// HTTP/3 (RFC 9114) for https servers that announce it, otherwise like `automatic`.
            ///
            /// A server announces HTTP/3 in the field `Alt-Svc` of an earlier response to the session, or in an HTTPS
            /// record if the resolver reads these records. If the server does not respond over UDP, the session uses
            /// TCP after a short delay. An open TCP connection serves further requests until it closes. If libcurl does
            /// not support HTTP/3, the value has no effect. If HTTP/3 was not used,
            /// ``TransferMetrics/withoutHTTP3`` is the reason.
            case http3
        }

        /// PING frames on silent HTTP/2 connections (RFC 9113 §6.7).
        public struct Ping: Sendable, Hashable {
            /// The time without a byte from the server after which the session sends a PING; 30 seconds unless set.
            ///
            /// The session sends a PING on connections in use and, with a libcurl before 8.0, on idle connections.
            public var interval: Duration
            /// The time limit for the server's next byte after a PING; 5 seconds unless set.
            ///
            /// If the server sends no byte, the transfers over the connection fail with `.connectionLost`, and the
            /// connection is closed.
            public var limit: Duration

            /// Creates settings; with the defaults, the session detects a dead server after 35 seconds of silence.
            public init(interval: Duration = .seconds(30), limit: Duration = .seconds(5)) {
                self.interval = interval
                self.limit = limit
            }
        }

        /// How the version is chosen; automatically unless set.
        public var version: Version
        /// The settings of PING frames on silent HTTP/2 connections; nil, the default, sends no PING frames.
        ///
        /// PING frames keep load balancers from closing connections, and detect a server that no longer responds. The
        /// setting has no effect with a libcurl that contains its own nghttp2.
        public var ping: Ping?
        /// The bodies that are sent only after an interim response of the server; from 1 MiB unless set.
        public var expectContinue: Request.ExpectContinue
        /// The time after which such a body is sent without an interim response; 1 s unless set.
        public var expectContinueTimeout: Duration
        /// How compressed responses are handled; they are requested and decompressed unless set.
        public var decompression: Request.Decompression
        /// Whether request bodies are compressed; they are not unless set.
        public var compression: Request.Compression

        /// Creates settings; each has its default unless given.
        public init(
            version: Version = .automatic, ping: Ping? = nil,
            expectContinue: Request.ExpectContinue = .above(.mebibytes(1)),
            expectContinueTimeout: Duration = .seconds(1), decompression: Request.Decompression = .automatic,
            compression: Request.Compression = .off
        ) {
            self.version = version
            self.ping = ping
            self.expectContinue = expectContinue
            self.expectContinueTimeout = expectContinueTimeout
            self.decompression = decompression
            self.compression = compression
        }
    }

    /// The sizes of a transfer's buffers.
    public struct Buffers: Sendable, Hashable, Encodable {
        /// The number of unread bytes at which the transfer is paused; 1 MiB unless set.
        public var highWater: ByteCount
        /// The number of unread bytes at which a paused transfer resumes; 512 KiB unless set.
        public var lowWater: ByteCount
        /// The number of bytes read from a socket at once; 64 KiB unless set.
        ///
        /// For bodies that are streamed without TLS, the number is up to four times as large.
        public var receive: ByteCount

        /// Creates sizes; each has its default unless given.
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
