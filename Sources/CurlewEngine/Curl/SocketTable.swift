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

    /// An open connection, told from a later one that gets its descriptor.
    struct Connection: Hashable {
        var descriptor: CInt
        var serial: UInt64

        /// One whose descriptor could not be found.
        static let unknown = Connection(descriptor: -1, serial: 0)
    }

    /// What a connection speaks, known with its first head.
    enum Version { case unknown, http1, http2 }

    private let epoll: CInt
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    private var entries: [Entry] = []
    /// The end of a socket pair whose other end is closed: what takes the place of a connection that must go at once.
    private var dead: CInt = -1
    /// How many sockets of ours are open.
    private(set) var open = 0
    private var lastSerial: UInt64 = 0
    private var lastLeaving: UInt64 = 0
    /// Connections that were closed after the server had ended them: the last ones, and whether their end can have cut
    /// no answer but one.
    private var ended: [(serial: UInt64, isClean: Bool)] = []
    /// When a descriptor is to be asked again for being writable.
    private(set) var rearmAt = Monotonic.never
    /// The turn's clock.
    var now: UInt64 = 0
    /// When to look for connections that nobody has used for too long.
    private(set) var expireAt = Monotonic.never
    private let idleLifetime: UInt64
    private let lifetime: UInt64

    /// - Parameters:
    ///   - idleLifetime: Nanoseconds that a connection stays open without use.
    ///   - lifetime: Nanoseconds after which a connection is closed once nobody uses it.
    init(epoll: CInt, idleLifetime: UInt64 = Monotonic.never, lifetime: UInt64 = Monotonic.never) {
        self.epoll = epoll
        self.idleLifetime = idleLifetime
        self.lifetime = lifetime
    }

    /// Where a token's event belongs: descriptor and domain number.
    static func parts(of token: UInt64) -> (descriptor: CInt, domain: UInt32) {
        (CInt(truncatingIfNeeded: token & 0xFFFF_FFFF), UInt32(truncatingIfNeeded: token >> 32))
    }

    private func grow(to descriptor: CInt) {
        while entries.count <= Int(descriptor) { entries.append(Entry()) }
    }

    deinit { if dead >= 0 { close(dead) } }

    @discardableResult
    func opened(_ descriptor: CInt, to origin: Origin?, in home: UInt32 = 0) -> Connection {
        grow(to: descriptor)
        leave(Int(descriptor))
        lastSerial += 1
        entries[Int(descriptor)] = Entry(
            home: home, isOurs: true, isCounted: true, origin: origin, serial: lastSerial, openedAt: now)
        open += 1
        origin?.sockets += 1
        origin?.count(1, in: home)
        return Connection(descriptor: descriptor, serial: lastSerial)
    }

    /// Called before the descriptor is closed: where a forked child still holds the connection, closing alone would
    /// leave epoll reporting it, under a number that is no longer ours.
    func closed(_ descriptor: CInt) {
        guard Int(descriptor) < entries.count else { return }
        if entries[Int(descriptor)].version == .http2, curlew_peer_has_ended(descriptor) {
            if ended.count >= 64 { ended.removeFirst(32) }
            let entry = entries[Int(descriptor)]
            ended.append((entry.serial, entry.users <= 1 && !entry.hasFailed))
        }
        forget(descriptor)
    }

    /// libcurl's wish: CURL_POLL_IN, OUT, INOUT or REMOVE.
    func watch(_ descriptor: CInt, what: CInt, domain: UInt32) {
        grow(to: descriptor)
        let index = Int(descriptor)
        var mask: UInt32 = 0
        if what != CURL_POLL_REMOVE {
            if what & CURL_POLL_IN != 0 { mask |= curlew_readable | curlew_peer_closed }
            if what & CURL_POLL_OUT != 0 { mask |= curlew_writable }
        }
        entries[index].wanted = mask
        let asked = entries[index].muteUntil == 0 ? mask : mask & ~curlew_writable
        if mask == 0 {
            if !entries[index].isOurs { forget(descriptor) }
            return
        }
        if !entries[index].isOurs && !entries[index].isMarked {
            curlew_close_pair_on_exec(descriptor)
            entries[index].isMarked = true
        }
        guard entries[index].registered != asked || entries[index].domain != domain else { return }
        entries[index].domain = domain
        register(descriptor, asked)
    }

    private func register(_ descriptor: CInt, _ mask: UInt32) {
        let index = Int(descriptor)
        let token = UInt64(entries[index].domain) << 32 | UInt64(UInt32(bitPattern: descriptor))
        if curlew_epoll_update(epoll, descriptor, entries[index].registered != 0, mask, token) == 0 {
            entries[index].registered = mask
        }
    }

    private func forget(_ descriptor: CInt) {
        let index = Int(descriptor)
        if entries[index].registered != 0 { _ = curlew_epoll_update(epoll, descriptor, true, 0, 0) }
        leave(index)
        entries[index] = Entry()
    }

    /// Counts a socket of ours out.
    private func leave(_ index: Int) {
        guard entries[index].isCounted else { return }
        open -= 1
        entries[index].isCounted = false
        entries[index].origin?.sockets -= 1
        entries[index].origin?.count(-1, in: entries[index].home)
        if entries[index].port >= 0 { entries[index].origin?.descriptors[entries[index].port] = nil }
        entries[index].origin = nil
    }

    /// Takes note that a connection was writable and that nothing could be written.
    ///
    /// libcurl 7.88 goes on asking while an HTTP/2 window is closed, which keeps a core busy. So after a few times there
    /// is a pause, which the next bytes from the server end.
    func isVainlyWritable(_ descriptor: CInt, now: UInt64) {
        let index = Int(descriptor)
        guard index < entries.count else { return }
        entries[index].vain += 1
        // A socket with a small buffer takes what libcurl holds already in some steps, of which nothing is seen here.
        guard entries[index].vain >= 64, entries[index].registered & curlew_writable != 0 else { return }
        entries[index].muteUntil = now &+ 20_000_000
        rearmAt = min(rearmAt, entries[index].muteUntil)
        register(descriptor, entries[index].wanted & ~curlew_writable)
    }

    /// Something came of an event, or bytes came from the server: writing may succeed again.
    func moved(_ descriptor: CInt) {
        let index = Int(descriptor)
        if index < entries.count, entries[index].vain > 0 { unmute(index) }
    }

    /// Asks again for what was not asked for a while.
    func rearm(_ now: UInt64) {
        rearmAt = Monotonic.never
        for index in entries.indices where entries[index].muteUntil != 0 {
            let until = entries[index].muteUntil
            if until <= now { unmute(index) } else { rearmAt = min(rearmAt, until) }
        }
    }

    private func unmute(_ index: Int) {
        entries[index].vain = 0
        guard entries[index].muteUntil != 0 else { return }
        entries[index].muteUntil = 0
        if entries[index].wanted != 0 { register(CInt(index), entries[index].wanted) }
    }

    // MARK: Who uses a connection

    /// Takes note that a transfer sends its request over the connection to an origin that has this local port: a known one
    /// or one of those that were opened for the transfer.
    func join(_ origin: Origin, port: Int, isIPv6: Bool, opened: [Connection] = []) -> Connection {
        let key = SocketTable.key(port: port, isIPv6: isIPv6)
        guard let descriptor = origin.descriptors[key] ?? find(key, for: origin, among: opened) else {
            origin.unplaced += 1
            return .unknown
        }
        entries[Int(descriptor)].users += 1
        if entries[Int(descriptor)].users > 1 { entries[Int(descriptor)].hadCompany = true }
        return Connection(descriptor: descriptor, serial: entries[Int(descriptor)].serial)
    }

    /// A local port as it names a connection of an origin.
    static func key(port: Int, isIPv6: Bool) -> Int { port | (isIPv6 ? 1 << 16 : 0) }

    /// The local port of an HTTP/2 connection that never served two transfers at the same time, as `key` gives it.
    func portOfLone(_ connection: Connection) -> Int? {
        guard let index = index(of: connection), !entries[index].hadCompany, entries[index].port >= 0 else {
            return nil
        }
        switch entries[index].version {
        case .http2: return entries[index].port
        case .unknown: return entries[index].origin?.isShared == true ? entries[index].port : nil
        case .http1: return nil
        }
    }

    private func find(_ key: Int, for origin: Origin, among opened: [Connection]) -> CInt? {
        for connection in opened {
            guard let index = index(of: connection), curlew_local_port(connection.descriptor) == key else { continue }
            entries[index].port = key
            origin.descriptors[key] = connection.descriptor
            return connection.descriptor
        }
        return nil
    }

    /// Forgets sockets that were opened for a transfer and over which nothing was sent: libcurl 7.88 closes those that
    /// never became a connection without a word, so their numbers may be somebody else's by now.
    func vanished(_ opened: [Connection]) {
        for connection in opened {
            guard let index = index(of: connection), entries[index].port < 0 else { continue }
            leave(index)
            entries[index] = Entry()
        }
    }

    /// The end of what `join` has begun.
    func part(_ connection: Connection, from origin: Origin) {
        if connection == .unknown { origin.unplaced -= 1 }
        guard let index = index(of: connection) else { return }
        entries[index].users -= 1
        lastLeaving += 1
        entries[index].leftAt = lastLeaving
        entries[index].idleSince = now
        expireAt = min(expireAt, expiry(index))
        // An event while it was paused may have ended that.
        if isIdle(index), entries[index].registered == 0 {
            register(connection.descriptor, curlew_readable | curlew_peer_closed)
        }
    }

    /// Whether somebody's request is on its way over a connection.
    func isUsed(_ connection: Connection) -> Bool { index(of: connection).map { entries[$0].users > 0 } ?? false }

    /// Takes note of what a connection speaks.
    func learn(_ connection: Connection, _ version: Version) {
        if let index = index(of: connection) { entries[index].version = version }
    }

    func version(of connection: Connection) -> Version { index(of: connection).map { entries[$0].version } ?? .unknown }

    /// Whether nothing but a refusal can have ended the only request over a connection: it has not ended itself.
    func isGoodFor(oneOf connection: Connection) -> Bool {
        guard let index = index(of: connection) else { return !ended.contains { $0.serial == connection.serial } }
        return entries[index].users <= 1 && entries[index].isCounted && !curlew_peer_has_ended(connection.descriptor)
    }

    /// Records that a request over a connection failed.
    func noteFailure(over connection: Connection) {
        if let index = index(of: connection) { entries[index].hasFailed = true }
    }

    /// Whether a connection of HTTP/2 may have cut an answer that passes for whole: it has ended with others on it, or
    /// was closed although the server had not ended it.
    func mayHaveCut(_ connection: Connection) -> Bool {
        guard connection != .unknown else { return false }
        guard let index = index(of: connection) else {
            return !ended.contains { $0.serial == connection.serial && $0.isClean }
        }
        let isClean = entries[index].users <= 1 && !entries[index].hasFailed
        return !isClean && curlew_peer_has_ended(connection.descriptor)
    }

    private func index(of connection: Connection) -> Int? {
        let index = Int(connection.descriptor)
        guard entries.indices.contains(index), entries[index].serial == connection.serial else { return nil }
        return index
    }

    /// Closes a connection that nobody uses.
    func buryIfIdle(_ connection: Connection) {
        if let index = index(of: connection), isIdle(index) { bury(connection.descriptor) }
    }

    /// Whether libcurl wants events of a descriptor.
    func wants(_ descriptor: CInt) -> Bool {
        Int(descriptor) < entries.count && entries[Int(descriptor)].wanted != 0
    }

    /// An event that nobody asked for: the registration ends, or epoll would report it for ever.
    ///
    /// On an idle connection it is the server's end, or bytes that belong to no request. libcurl 7.88 would take them for
    /// the answer to the next one, so such a connection is closed here and now. An idle HTTP/2 connection has frames of
    /// its own; its end is the only event that matters.
    func stray(_ descriptor: CInt, _ mask: UInt32) {
        let index = Int(descriptor)
        guard index < entries.count, entries[index].registered != 0 else { return }
        let hasEnded = mask & (curlew_peer_closed | curlew_hung_up | curlew_failed) != 0
        guard isIdle(index) else { return unregister(descriptor) }
        let isUnasked = mask & curlew_readable != 0 && entries[index].version != .http2
        if hasEnded || isUnasked { return bury(descriptor) }
        register(
            descriptor, entries[index].version == .http2 ? curlew_peer_closed : curlew_readable | curlew_peer_closed)
    }

    /// Whether a socket waits in libcurl's pool, which it has not reached before it was used.
    private func isIdle(_ index: Int) -> Bool {
        let entry = entries[index]
        guard entry.isCounted, entry.port >= 0, entry.wanted == 0, entry.users == 0 else { return false }
        return entry.origin?.unplaced == 0
    }

    private func unregister(_ descriptor: CInt) {
        _ = curlew_epoll_update(epoll, descriptor, true, 0, 0)
        entries[Int(descriptor)].registered = 0
    }

    /// When a connection that was just left has been open for too long.
    private func expiry(_ index: Int) -> UInt64 {
        let (idle, isNever) = entries[index].idleSince.addingReportingOverflow(idleLifetime)
        let (old, isAgeless) = entries[index].openedAt.addingReportingOverflow(lifetime)
        return min(isNever ? Monotonic.never : idle, isAgeless ? Monotonic.never : old)
    }

    /// Closes the connections that nobody has used for too long: libcurl looks for them only when it wants one.
    func expire() {
        expireAt = Monotonic.never
        for index in entries.indices where isIdle(index) {
            let expiry = expiry(index)
            if expiry <= now { bury(CInt(index)) } else { expireAt = min(expireAt, expiry) }
        }
    }

    /// Closes the idle HTTP/1.1 connections to an origin that have something to say, which can only be their end, and those
    /// that were idle for at least `limit` nanoseconds, which the server may end at this moment.
    ///
    /// libcurl 7.88 takes a connection that has ended for a good one when a close_notify comes first (RFC 8446 §6.1).
    func buryStale(of origin: Origin, after limit: UInt64) {
        var questions: [pollfd] = []
        for descriptor in origin.descriptors.values {
            let entry = entries[Int(descriptor)]
            guard entry.version != .http2, isIdle(Int(descriptor)) else { continue }
            if now &- min(now, entry.idleSince) >= limit {
                bury(descriptor)
            } else {
                questions.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            }
        }
        guard !questions.isEmpty, poll(&questions, nfds_t(questions.count), 0) > 0 else { return }
        for question in questions where question.revents != 0 { bury(question.fd) }
    }

    /// Closes the connection that is idle longest of those whose origin fits, without libcurl, which finds it dead when
    /// it looks.
    func buryOldestIdle(where fits: (Origin) -> Bool) {
        let idle = entries.indices.filter { isIdle($0) && entries[$0].origin.map(fits) == true }
        if let oldest = idle.min(by: { entries[$0].leftAt < entries[$1].leftAt }) { bury(CInt(oldest)) }
    }

    /// Closes a connection at once and leaves libcurl a descriptor that reads as closed.
    private func bury(_ descriptor: CInt) {
        if entries[Int(descriptor)].registered != 0 { unregister(descriptor) }
        if dead < 0 { dead = curlew_dead_socket() }
        guard dead >= 0, curlew_replace(descriptor, dead) else {
            // No descriptor is left: the peer hears of it all the same, and libcurl sees it mostly.
            shutdown(descriptor, CInt(SHUT_RDWR))
            return
        }
        leave(Int(descriptor))
    }
}
