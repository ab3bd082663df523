// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

// Preconnected connections, PING on silent connections, and the numbers of connections.
extension SocketTable {
    /// Records that a connection was opened in advance and has carried no request.
    func undoRequest(_ connection: Connection) {
        if let index = index(of: connection) { entries[index].requests -= 1 }
    }

    /// Whether unread bytes on an idle connection may be session tickets.
    ///
    /// A TLS server sends tickets after the handshake (RFC 8446 §4.6.1), and libcurl reads them with the first request.
    func mayHaveTickets(_ index: Int) -> Bool {
        entries[index].requests == 0 && entries[index].origin?.isSecure == true
    }

    // MARK: Silent HTTP/2 connections

    func setSession(_ session: UnsafeMutableRawPointer, of connection: Connection, _ url: ParsedURL) {
        guard let index = index(of: connection) else { return }
        entries[index].url = url
        // A further request on a silent connection does not end its silence.
        guard entries[index].session != session else { return }
        entries[index].session = session
        entries[index].heardAt = now
        entries[index].pingedAt = 0
    }

    /// Returns the nghttp2 session of an open connection, and a URL of its server.
    func session(of connection: Connection) -> (UnsafeMutableRawPointer, ParsedURL)? {
        guard let index = index(of: connection), let session = entries[index].session, let url = entries[index].url
        else { return nil }
        return (session, url)
    }

    func key(of connection: Connection) -> Int? { index(of: connection).map { entries[$0].port } }

    func home(of connection: Connection) -> UInt32? { index(of: connection).map { entries[$0].home } }

    func recordBytes(from descriptor: CInt) {
        guard Int(descriptor) < entries.count else { return }
        entries[Int(descriptor)].heardAt = now
        entries[Int(descriptor)].pingedAt = 0
    }

    /// Records the acknowledgement of a PING.
    ///
    /// libcurl may have read it without an event of the socket.
    func recordAnswer(of session: UnsafeMutableRawPointer) {
        guard let index = entries.firstIndex(where: { $0.session == session }) else { return }
        recordBytes(from: CInt(index))
    }

    /// The number of unsent bytes from which on the PING may wait behind a body.
    private static let longQueue = 4096

    func recordPing(_ connection: Connection, now: UInt64) {
        guard let index = index(of: connection) else { return }
        entries[index].pingedAt = now
        entries[index].unsentAtPing = Int(curlew_unsent(connection.descriptor))
    }

    /// Returns the connections that need a PING, the connections without a byte from the server since their PING, and
    /// the time of the next check.
    func duePings(
        _ pings: EngineConfiguration.Pings, now: UInt64
    ) -> (silent: [Connection], unanswered: [Connection], next: UInt64) {
        var (silent, unanswered, next): ([Connection], [Connection], UInt64) = ([], [], Monotonic.never)
        for index in entries.indices where entries[index].session != nil && entries[index].isCounted {
            let connection = Connection(descriptor: CInt(index), serial: entries[index].serial)
            if entries[index].pingedAt != 0 {
                // The engine does not read from an idle connection, so the acknowledgement stays in the kernel's
                // buffer.
                // libcurl has read all earlier bytes before it sent the PING.
                let isAnswered = curlew_unread(connection.descriptor) > 0
                let unsent = Int(curlew_unsent(connection.descriptor))
                if entries[index].unsentAtPing > SocketTable.longQueue, unsent < entries[index].unsentAtPing {
                    // A long body before the PING is still leaving this machine.
                    recordPing(connection, now: now)
                }
                if isAnswered {
                    recordBytes(from: connection.descriptor)
                } else if now >= entries[index].pingedAt &+ pings.limit {
                    unanswered.append(connection)
                    continue
                } else {
                    next = min(next, entries[index].pingedAt &+ pings.limit, now &+ pings.interval)
                    continue
                }
            }
            if entries[index].users > 0, curlew_unread(connection.descriptor) > 0 {
                // A paused transfer leaves received bytes unread, so an answer could not be seen.
                recordBytes(from: connection.descriptor)
                next = min(next, now &+ pings.interval)
            } else if now >= entries[index].heardAt &+ pings.interval {
                silent.append(connection)
                next = min(next, now &+ min(pings.limit, pings.interval))
            } else {
                next = min(next, entries[index].heardAt &+ pings.interval)
            }
        }
        return (silent, unanswered, next)
    }

    /// Closes a connection whose server is dead.
    func closeDead(_ connection: Connection) {
        if index(of: connection) != nil { closeNow(connection.descriptor) }
    }

    /// The numbers of open and idle connections of each origin.
    var countsByOrigin: [ObjectIdentifier: (open: Int, idle: Int)] {
        var counts: [ObjectIdentifier: (open: Int, idle: Int)] = [:]
        for index in entries.indices where entries[index].isCounted {
            guard let origin = entries[index].origin else { continue }
            let idle = isIdle(index) ? 1 : 0
            let known = counts[ObjectIdentifier(origin)] ?? (0, 0)
            counts[ObjectIdentifier(origin)] = (known.open + 1, known.idle + idle)
        }
        return counts
    }
}
