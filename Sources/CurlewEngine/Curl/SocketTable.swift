// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

/// Which descriptors libcurl watches, mirrored into epoll as lazily as possible.
///
/// libcurl asks to stop watching a connection at the end of each request and to watch it again at the start of the
/// next; obeying costs two system calls a request. A descriptor of ours stays registered until it is closed, or until
/// an event comes that nobody asked for.
final class SocketTable {
    static let wakeToken = UInt64.max

    private struct Entry {
        var wanted: UInt32 = 0
        var registered: UInt32 = 0
        var domain: UInt32 = 0
        /// Opened by us, so that its closing is seen too; libcurl's resolver makes others.
        var isOurs = false
        var isMarked = false
    }

    private let epoll: CInt
    private var entries: [Entry] = []

    init(epoll: CInt) { self.epoll = epoll }

    /// Where a token's event belongs: descriptor and domain number.
    static func parts(of token: UInt64) -> (descriptor: CInt, domain: UInt32) {
        (CInt(truncatingIfNeeded: token & 0xFFFF_FFFF), UInt32(truncatingIfNeeded: token >> 32))
    }

    private func grow(to descriptor: CInt) {
        while entries.count <= Int(descriptor) { entries.append(Entry()) }
    }

    func opened(_ descriptor: CInt) {
        grow(to: descriptor)
        entries[Int(descriptor)] = Entry(isOurs: true)
    }

    /// Called before the descriptor is closed: where a forked child still holds the connection, closing alone would
    /// leave epoll reporting it, under a number that is no longer ours.
    func closed(_ descriptor: CInt) {
        if Int(descriptor) < entries.count { forget(descriptor) }
    }

    /// libcurl's wish: CURL_POLL_IN, OUT, INOUT or REMOVE.
    func watch(_ descriptor: CInt, what: CInt, domain: UInt32) {
        grow(to: descriptor)
        let index = Int(descriptor)
        var mask: UInt32 = 0
        if what != CURL_POLL_REMOVE {
            if what & CURL_POLL_IN != 0 { mask |= curlew_readable }
            if what & CURL_POLL_OUT != 0 { mask |= curlew_writable }
        }
        entries[index].wanted = mask
        if mask == 0 {
            if !entries[index].isOurs { forget(descriptor) }
            return
        }
        if !entries[index].isOurs && !entries[index].isMarked {
            curlew_close_pair_on_exec(descriptor)
            entries[index].isMarked = true
        }
        guard entries[index].registered != mask || entries[index].domain != domain else { return }
        let token = UInt64(domain) << 32 | UInt64(UInt32(bitPattern: descriptor))
        if curlew_epoll_update(epoll, descriptor, entries[index].registered != 0, mask, token) == 0 {
            entries[index].registered = mask
            entries[index].domain = domain
        }
    }

    private func forget(_ descriptor: CInt) {
        if entries[Int(descriptor)].registered != 0 { _ = curlew_epoll_update(epoll, descriptor, true, 0, 0) }
        entries[Int(descriptor)] = Entry()
    }

    /// Whether libcurl wants an event; an unwanted one ends the registration, or epoll would report it for ever.
    func wants(_ descriptor: CInt) -> Bool {
        guard Int(descriptor) < entries.count else { return false }
        if entries[Int(descriptor)].wanted != 0 { return true }
        if entries[Int(descriptor)].registered != 0 {
            _ = curlew_epoll_update(epoll, descriptor, true, 0, 0)
            entries[Int(descriptor)].registered = 0
        }
        return false
    }
}
