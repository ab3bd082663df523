// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension SocketTable {
    /// What is known of a descriptor; only the table changes it.
    struct Entry {
        var wanted: UInt32 = 0
        var registered: UInt32 = 0
        var domain: UInt32 = 0
        /// The domain for which it was opened.
        var home: UInt32 = 0
        /// Opened by us, so that its closing is seen too; libcurl's resolver makes others.
        var isOurs = false
        /// Counted among those that are open.
        var isCounted = false
        var version = Version.unknown
        var isMarked = false
        /// Where it leads to, and its local port there, once that is known.
        var origin: Origin?
        var port = -1
        var serial: UInt64 = 0
        /// How many transfers are on the wire with a request over it: libcurl watches no socket of one that is paused.
        var users = 0
        /// Two of them were there at the same time.
        var hadCompany = false
        /// Whether a request over it failed, other than by our own order.
        var hasFailed = false
        /// When it was last left, in the order of all that were.
        var leftAt: UInt64 = 0
        /// When it was opened, and last left, on the monotonic clock.
        var openedAt: UInt64 = 0
        var idleSince: UInt64 = 0
        /// How often in a row it was writable and nothing came of it, and until when it is not asked again.
        var vain = 0
        var muteUntil: UInt64 = 0
    }
}
