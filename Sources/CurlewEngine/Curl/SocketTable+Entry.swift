// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension SocketTable {
    /// The state of a descriptor; only the table changes it.
    struct Entry {
        var wanted: UInt32 = 0
        var registered: UInt32 = 0
        var domain: UInt32 = 0
        /// The domain for which the socket was opened.
        var home: UInt32 = 0
        /// Whether this engine opened the socket, so that its closing is seen too; libcurl's resolver opens other
        /// descriptors.
        var isOurs = false
        /// Whether the socket counts as open.
        var isCounted = false
        /// Whether this is a UDP socket, for HTTP/3.
        var isDatagram = false
        var version = Version.unknown
        var isMarked = false
        /// The origin of the socket, and its local port once that is known.
        var origin: Origin?
        var port = -1
        /// The endpoint of the connection, if libcurl reports another one.
        var endpoint: SocketAddress?
        var serial: UInt64 = 0
        /// The number of transfers with a request on the connection; libcurl does not watch the socket of a paused
        /// transfer.
        var users = 0
        /// The number of requests that were sent over the connection.
        var requests = 0
        /// Whether two transfers used the connection at the same time.
        var hadSeveralUsers = false
        /// Whether a request on the connection failed without being cancelled.
        var hasFailed = false
        /// The nghttp2 session of the connection and a URL of its server, if silence is checked.
        var session: UnsafeMutableRawPointer?
        var url: ParsedURL?
        /// The time at which bytes were last received or a request was sent, and at which an unanswered PING was sent.
        var heardAt: UInt64 = 0
        var pingedAt: UInt64 = 0
        /// The number of sent bytes in the kernel's buffer when the PING was sent.
        var unsentAtPing = 0
        /// The position in the order in which transfers left connections; larger is later.
        var leftAt: UInt64 = 0
        /// The times at which the socket was opened and at which a transfer last left it, on the monotonic clock.
        var openedAt: UInt64 = 0
        var idleSince: UInt64 = 0
        /// The number of times in a row that the socket was writable without progress, and the time until which it is
        /// not polled for writing.
        var futileWrites = 0
        var muteUntil: UInt64 = 0
    }
}
