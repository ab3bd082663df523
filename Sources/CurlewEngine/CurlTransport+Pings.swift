// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

// PING frames on HTTP/2 connections (RFC 9113 §6.7). They keep load balancers from closing a silent connection, and
// detect a dead server; TCP alone detects a dead server only when it sends data. libcurl 7.88 sends PING only for its
// easy interface, so the engine submits the frame to nghttp2. Newer versions do not send this frame on an idle
// connection, so there only connections in use are checked.
extension CurlTransport {
    /// Records the nghttp2 session of a request's connection when the request opens a stream.
    func recordSession(_ session: UnsafeMutableRawPointer, of handle: EasyHandle) {
        guard limits.pings != nil, let connection = handle.transfer?.loopState.connection, let url = handle.url else {
            return
        }
        sockets.setSession(session, of: connection, url)
        pingAt = min(pingAt, now &+ (limits.pings?.interval ?? 0))
    }

    /// Sends the PING frames that are due, and ends the transfers over connections whose server is dead.
    func checkPings(_ pings: EngineConfiguration.Pings) {
        let due = sockets.duePings(pings, now: now)
        pingAt = due.next
        for connection in due.unanswered { endDead(connection, pings) }
        for connection in due.silent { ping(connection) }
    }

    private func ping(_ connection: SocketTable.Connection) {
        guard let (session, url) = sockets.session(of: connection), let domain = domain(of: connection) else { return }
        let isUsed = sockets.isUsed(connection)
        if !isUsed, !CurlVersion.current.flushesIdleConnections {
            return sockets.recordBytes(from: connection.descriptor)
        }
        guard curlew_ping(session) else { return }
        if isUsed {
            flushFrames(over: connection, domain)
            return sockets.recordPing(connection, now: now)
        }
        guard let key = sockets.key(of: connection), let handle = domain.takeHandle() else { return }
        // libcurl may choose another idle connection to the server; then this one gets its PING later.
        if handle.flush(over: key, to: url) {
            sockets.recordPing(connection, now: now)
        } else {
            sockets.recordBytes(from: connection.descriptor)
        }
        domain.recycle(handle)
        wantsTurn = true
    }

    private func domain(of connection: SocketTable.Connection) -> CurlDomain? {
        guard let number = sockets.home(of: connection), Int(number) < domains.count else { return nil }
        return domains[Int(number)]
    }

    /// Ends the transfers over a connection whose server is dead, and closes the connection.
    private func endDead(_ connection: SocketTable.Connection, _ pings: EngineConfiguration.Pings) {
        let victims = inUse.filter { $0.transfer?.loopState.connection == connection }
        // Close the connection first, so that no waiting transfer joins it.
        sockets.closeDead(connection)
        for handle in victims {
            guard let transfer = handle.transfer else { continue }
            let failure = EngineFailure(.pingUnanswered(after: pings.limit), phase: phase(of: handle, transfer))
            end(handle, failure)
        }
    }
}
