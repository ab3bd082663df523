// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// The descriptors that libcurl watches, copied into epoll as lazily as possible.
///
/// libcurl stops watching a connection at the end of each request and watches it again at the start of the next one;
/// following that would cost two system calls per request. A descriptor opened by this engine stays registered until it
/// is closed, or until an unexpected event arrives.
final class SocketTable {
    static let wakeToken = UInt64.max

    /// An open connection; the serial number distinguishes it from a later one with the same descriptor.
    struct Connection: Hashable {
        var descriptor: CInt
        var serial: UInt64

        /// A connection whose descriptor could not be found.
        static let unknown = Connection(descriptor: -1, serial: 0)
    }

    /// The HTTP version of a connection, known when its first head arrives.
    enum Version { case unknown, http1, http2, http3 }

    private let epoll: CInt
    #if !DEBUG
    @exclusivity(unchecked)
    #endif
    var entries: [Entry] = []
    /// One end of a socket pair whose other end is closed; it replaces the descriptor of a connection that is closed at
    /// once.
    private var dead: CInt = -1
    /// The number of open sockets of this engine.
    private(set) var open = 0
    private var lastSerial: UInt64 = 0
    private var lastLeaving: UInt64 = 0
    /// The HTTP/2 connections that were closed last after the server had ended them, and whether that end can have
    /// truncated at most one response.
    private var ended: [(serial: UInt64, isClean: Bool)] = []
    /// The next time at which a descriptor is polled for writing again.
    private(set) var rearmAt = Monotonic.never
    /// The clock of the turn, in nanoseconds.
    var now: UInt64 = 0
    /// The next time at which idle connections are checked for expiry.
    private(set) var expireAt = Monotonic.never
    private let idleLifetime: UInt64
    private let lifetime: UInt64
    private let mostRequests: Int

    /// - Parameters:
    ///   - idleLifetime: Nanoseconds that a connection stays open without use.
    ///   - lifetime: Nanoseconds after which a connection is closed as soon as it is idle.
    ///   - mostRequests: The number of requests after which a connection is closed as soon as it is idle.
    init(
        epoll: CInt, idleLifetime: UInt64 = Monotonic.never, lifetime: UInt64 = Monotonic.never,
        mostRequests: Int = .max
    ) {
        self.epoll = epoll
        self.mostRequests = mostRequests
        self.idleLifetime = idleLifetime
        self.lifetime = lifetime
    }

    /// Splits a token of epoll into descriptor and domain number.
    static func parts(of token: UInt64) -> (descriptor: CInt, domain: UInt32) {
        (CInt(truncatingIfNeeded: token & 0xFFFF_FFFF), UInt32(truncatingIfNeeded: token >> 32))
    }

    private func grow(to descriptor: CInt) {
        while entries.count <= Int(descriptor) { entries.append(Entry()) }
    }

    deinit { if dead >= 0 { close(dead) } }

    @discardableResult
    func opened(_ descriptor: CInt, to origin: Origin?, in home: UInt32 = 0, isDatagram: Bool = false) -> Connection {
        grow(to: descriptor)
        leave(Int(descriptor))
        lastSerial += 1
        entries[Int(descriptor)] = Entry(
            home: home, isOurs: true, isCounted: true, isDatagram: isDatagram, origin: origin, serial: lastSerial,
            openedAt: now)
        open += 1
        origin?.sockets += 1
        origin?.count(1, in: home)
        return Connection(descriptor: descriptor, serial: lastSerial)
    }

    /// Forgets a descriptor before it is closed.
    ///
    /// If a forked child still holds the connection, closing alone would leave the descriptor registered: epoll would
    /// keep reporting it under a number that may belong to another file.
    func closed(_ descriptor: CInt) {
        guard Int(descriptor) < entries.count else { return }
        if entries[Int(descriptor)].version == .http2, curlew_peer_has_ended(descriptor) {
            if ended.count >= 64 { ended.removeFirst(32) }
            let entry = entries[Int(descriptor)]
            ended.append((entry.serial, entry.users <= 1 && !entry.hasFailed))
        }
        forget(descriptor)
    }

    /// Records the events that libcurl wants: CURL_POLL_IN, OUT, INOUT or REMOVE.
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

    /// Removes a socket of this engine from the counts.
    private func leave(_ index: Int) {
        guard entries[index].isCounted else { return }
        open -= 1
        entries[index].isCounted = false
        entries[index].origin?.sockets -= 1
        entries[index].origin?.count(-1, in: entries[index].home)
        if entries[index].port >= 0 { entries[index].origin?.descriptors[entries[index].port] = nil }
        entries[index].origin = nil
    }

    /// Records that a connection was writable and libcurl could not write to it.
    ///
    /// libcurl 7.88 keeps polling for writing while an HTTP/2 window is closed, which keeps a core busy. After 64 such
    /// events in a row, the descriptor is not polled for writing for 20 ms, or until bytes from the server arrive.
    func recordFutileWrite(_ descriptor: CInt, now: UInt64) {
        let index = Int(descriptor)
        guard index < entries.count else { return }
        entries[index].futileWrites += 1
        // With a small socket buffer, libcurl writes its buffered bytes in several steps, which this table does not
        // see.
        guard entries[index].futileWrites >= 64, entries[index].registered & curlew_writable != 0 else { return }
        entries[index].muteUntil = now &+ 20_000_000
        rearmAt = min(rearmAt, entries[index].muteUntil)
        register(descriptor, entries[index].wanted & ~curlew_writable)
    }

    /// Records progress on a connection: writing may succeed again.
    func moved(_ descriptor: CInt) {
        let index = Int(descriptor)
        if index < entries.count, entries[index].futileWrites > 0 { unmute(index) }
    }

    /// Polls again for writing on descriptors whose pause has ended.
    func rearm(_ now: UInt64) {
        rearmAt = Monotonic.never
        for index in entries.indices where entries[index].muteUntil != 0 {
            let until = entries[index].muteUntil
            if until <= now { unmute(index) } else { rearmAt = min(rearmAt, until) }
        }
    }

    private func unmute(_ index: Int) {
        entries[index].futileWrites = 0
        guard entries[index].muteUntil != 0 else { return }
        entries[index].muteUntil = 0
        if entries[index].wanted != 0 { register(CInt(index), entries[index].wanted) }
    }

    // MARK: Use of connections

    /// Records that a transfer sends its request over a connection, identified by its local port: a known connection of
    /// the origin, or one that was opened for the transfer.
    ///
    /// - Parameter mayBeDatagram: Whether the port may be one of UDP, which libcurl does not tell: the transfer may use
    ///   HTTP/3.
    func join(
        _ origin: Origin, port: Int, isIPv6: Bool, mayBeDatagram: Bool = false, opened: [Connection] = []
    ) -> Connection {
        func socket(isDatagram: Bool) -> CInt? {
            let key = Origin.descriptorKey(port: port, isIPv6: isIPv6, isDatagram: isDatagram)
            return origin.descriptors[key] ?? find(key, for: origin, among: opened)
        }
        let isUnix = origin.route?.isSocket == true
        let overUDP = mayBeDatagram ? socket(isDatagram: true) : nil
        let known = isUnix ? takeUnixSocket(opened, of: origin) : overUDP ?? socket(isDatagram: false)
        guard let descriptor = known else {
            origin.unidentifiedUsers += 1
            return .unknown
        }
        entries[Int(descriptor)].users += 1
        entries[Int(descriptor)].requests += 1
        if entries[Int(descriptor)].users > 1 { entries[Int(descriptor)].hadSeveralUsers = true }
        return Connection(descriptor: descriptor, serial: entries[Int(descriptor)].serial)
    }

    /// Returns the key of an HTTP/2 connection that never served two transfers at the same time.
    func keyOfUnshared(_ connection: Connection) -> Int? {
        guard let index = index(of: connection), !entries[index].hadSeveralUsers, entries[index].port >= 0 else {
            return nil
        }
        switch entries[index].version {
        case .http2: return entries[index].port
        case .unknown: return entries[index].origin?.isShared == true ? entries[index].port : nil
        case .http1, .http3: return nil
        }
    }

    /// Returns the Unix socket that was opened for a transfer: a transfer over a Unix socket never uses an open
    /// connection, because only a port identifies one.
    private func takeUnixSocket(_ opened: [Connection], of origin: Origin) -> CInt? {
        guard let connection = opened.last, let index = index(of: connection) else { return nil }
        let key = Origin.descriptorKey(ofUnixSocket: connection.descriptor)
        entries[index].port = key
        origin.descriptors[key] = connection.descriptor
        return connection.descriptor
    }

    private func find(_ key: Int, for origin: Origin, among opened: [Connection]) -> CInt? {
        for connection in opened {
            guard let index = index(of: connection) else { continue }
            let isDatagram = entries[index].isDatagram
            // The number includes the bit of the family, and is negative without a port.
            let port = Int(curlew_local_port(connection.descriptor))
            guard port >= 0, Origin.descriptorKey(port: port, isIPv6: false, isDatagram: isDatagram) == key else {
                continue
            }
            entries[index].port = key
            origin.descriptors[key] = connection.descriptor
            return connection.descriptor
        }
        return nil
    }

    /// Forgets sockets that were opened for a transfer and over which no request was sent.
    ///
    /// libcurl 7.88 does not report the closing of sockets that never became a connection, so their numbers may already
    /// belong to other files.
    func forgetUnconnected(_ opened: [Connection]) {
        for connection in opened {
            guard let index = index(of: connection), entries[index].port < 0 else { continue }
            leave(index)
            entries[index] = Entry()
        }
    }

    /// Records that a transfer leaves the connection that it joined with `join`.
    func leave(_ connection: Connection, from origin: Origin) {
        if connection == .unknown { origin.unidentifiedUsers -= 1 }
        guard let index = index(of: connection) else { return }
        entries[index].users -= 1
        lastLeaving += 1
        entries[index].leftAt = lastLeaving
        entries[index].idleSince = now
        expireAt = min(expireAt, expiry(index))
        // An event during a pause may have ended the registration.
        if isIdle(index), entries[index].registered == 0 {
            register(connection.descriptor, curlew_readable | curlew_peer_closed)
        }
    }

    /// Whether a transfer has a request on a connection.
    func isUsed(_ connection: Connection) -> Bool { index(of: connection).map { entries[$0].users > 0 } ?? false }

    /// Records the HTTP version of a connection.
    func learn(_ connection: Connection, _ version: Version) {
        if let index = index(of: connection) { entries[index].version = version }
    }

    func version(of connection: Connection) -> Version { index(of: connection).map { entries[$0].version } ?? .unknown }

    /// Whether only a refusal can have ended the single request on a connection, because the connection itself has not
    /// ended.
    func canOnlyBeRefused(oneOf connection: Connection) -> Bool {
        guard let index = index(of: connection) else { return !ended.contains { $0.serial == connection.serial } }
        return entries[index].users <= 1 && entries[index].isCounted && !curlew_peer_has_ended(connection.descriptor)
    }

    /// Records that a request on a connection failed.
    func noteFailure(over connection: Connection) {
        if let index = index(of: connection) { entries[index].hasFailed = true }
    }

    /// Whether an HTTP/2 connection may have truncated a response that looks complete: it ended while several transfers
    /// used it, or it was closed although the server had not ended it.
    func mayHaveTruncated(_ connection: Connection) -> Bool {
        guard connection != .unknown else { return false }
        guard let index = index(of: connection) else {
            return !ended.contains { $0.serial == connection.serial && $0.isClean }
        }
        let isClean = entries[index].users <= 1 && !entries[index].hasFailed
        return !isClean && curlew_peer_has_ended(connection.descriptor)
    }

    func index(of connection: Connection) -> Int? {
        let index = Int(connection.descriptor)
        guard entries.indices.contains(index), entries[index].serial == connection.serial else { return nil }
        return index
    }

    /// Closes a connection if it is idle.
    func closeIfIdle(_ connection: Connection) {
        if let index = index(of: connection), mayClose(index) { closeNow(connection.descriptor) }
    }

    /// Whether libcurl wants events of a descriptor.
    func wants(_ descriptor: CInt) -> Bool {
        Int(descriptor) < entries.count && entries[Int(descriptor)].wanted != 0
    }

    /// Handles an unexpected event: the registration ends, because epoll would otherwise report the event forever.
    ///
    /// On an idle connection, the event is the server's end, or bytes that belong to no request. libcurl 7.88 would
    /// take these bytes for the response to the next request, so the connection is closed at once. An idle HTTP/2
    /// connection may receive frames; only its end matters.
    func handleUnexpectedEvent(_ descriptor: CInt, _ mask: UInt32) {
        let index = Int(descriptor)
        guard index < entries.count, entries[index].registered != 0 else { return }
        let hasEnded = mask & (curlew_peer_closed | curlew_hung_up | curlew_failed) != 0
        guard mayClose(index) else { return unregister(descriptor) }
        let mayBeReadable = entries[index].version == .http2 || mayHaveTickets(index)
        if hasEnded || mask & curlew_readable != 0 && !mayBeReadable { return closeNow(descriptor) }
        register(descriptor, mayBeReadable ? curlew_peer_closed : curlew_readable | curlew_peer_closed)
    }

    /// Whether a socket is an idle connection in libcurl's pool; a socket enters the pool only after a request used it.
    func isIdle(_ index: Int) -> Bool {
        let entry = entries[index]
        guard entry.isCounted, entry.port >= 0, entry.wanted == 0, entry.users == 0 else { return false }
        return entry.origin?.unidentifiedUsers == 0
    }

    /// Whether the engine may close an idle connection.
    ///
    /// Only libcurl may close QUIC connections: it treats a closed descriptor as a socket without packets.
    private func mayClose(_ index: Int) -> Bool { !entries[index].isDatagram && isIdle(index) }

    private func unregister(_ descriptor: CInt) {
        _ = curlew_epoll_update(epoll, descriptor, true, 0, 0)
        entries[Int(descriptor)].registered = 0
    }

    /// Returns the time at which an idle connection expires.
    private func expiry(_ index: Int) -> UInt64 {
        let (idle, isNever) = entries[index].idleSince.addingReportingOverflow(idleLifetime)
        if entries[index].requests >= mostRequests { return 0 }
        let (old, isAgeless) = entries[index].openedAt.addingReportingOverflow(lifetime)
        return min(isNever ? Monotonic.never : idle, isAgeless ? Monotonic.never : old)
    }

    /// Closes the expired connections: libcurl checks for them only when it needs a connection.
    func expire() {
        expireAt = Monotonic.never
        for index in entries.indices where mayClose(index) {
            let expiry = expiry(index)
            if expiry <= now { closeNow(CInt(index)) } else { expireAt = min(expireAt, expiry) }
        }
    }

    /// Closes the idle HTTP/1.1 connections to an origin that are readable, which can only mean their end, and those
    /// that were idle for at least `limit` nanoseconds, because the server may close them at this moment.
    ///
    /// libcurl 7.88 treats an ended connection as good if a close_notify arrives first (RFC 8446 §6.1).
    func closeStale(of origin: Origin, after limit: UInt64) {
        var questions: [pollfd] = []
        for descriptor in origin.descriptors.descriptors {
            let entry = entries[Int(descriptor)]
            guard entry.version != .http2, mayClose(Int(descriptor)) else { continue }
            if now &- min(now, entry.idleSince) >= limit {
                closeNow(descriptor)
            } else if !mayHaveTickets(Int(descriptor)) {
                questions.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            }
        }
        guard !questions.isEmpty, poll(&questions, nfds_t(questions.count), 0) > 0 else { return }
        for question in questions where question.revents != 0 { closeNow(question.fd) }
    }

    /// Closes the connection that has been idle longest, among those whose origin fits; libcurl finds it dead at its
    /// next check.
    func closeOldestIdle(where fits: (Origin) -> Bool) {
        let idle = entries.indices.filter { mayClose($0) && entries[$0].origin.map(fits) == true }
        if let oldest = idle.min(by: { entries[$0].leftAt < entries[$1].leftAt }) { closeNow(CInt(oldest)) }
    }

    /// Replaces the socket of a connection that libcurl waits for; the number of the descriptor does not change.
    ///
    /// - Parameters:
    ///   - connection: The connection that libcurl waits for; its socket is closed.
    ///   - rival: The connection that replaces it; the caller closes its descriptor.
    ///   - endpoint: The address and port of `rival`.
    /// - Returns: False if the system refuses; the connection is then unchanged.
    func replace(_ connection: Connection, by rival: Connection, to endpoint: SocketAddress) -> Bool {
        guard let index = index(of: connection), self.index(of: rival) != nil else { return false }
        if entries[index].registered != 0 { unregister(connection.descriptor) }
        let isReplaced = curlew_replace(connection.descriptor, rival.descriptor)
        if isReplaced { entries[index].endpoint = endpoint }
        register(connection.descriptor, entries[index].wanted)
        return isReplaced
    }

    /// Returns the endpoint of a connection, if libcurl reports another one.
    func endpoint(of connection: Connection) -> SocketAddress? {
        index(of: connection).flatMap { entries[$0].endpoint }
    }

    /// Whether a connection uses HTTP/3.
    func isDatagram(_ connection: Connection) -> Bool { index(of: connection).map { entries[$0].isDatagram } ?? false }

    /// Records the endpoint of a connection for which libcurl reports another port.
    func learn(_ connection: Connection, _ endpoint: SocketAddress) {
        if let index = index(of: connection) { entries[index].endpoint = endpoint }
    }

    /// Closes a connection at once, and gives libcurl a descriptor that reads as closed.
    func closeNow(_ descriptor: CInt) {
        if entries[Int(descriptor)].registered != 0 { unregister(descriptor) }
        if dead < 0 { dead = curlew_dead_socket() }
        guard dead >= 0, curlew_replace(descriptor, dead) else {
            // No descriptor is left. The shutdown still reaches the peer, and in most cases libcurl notices it.
            shutdown(descriptor, CInt(SHUT_RDWR))
            return
        }
        leave(Int(descriptor))
    }
}
