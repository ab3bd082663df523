// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

/// A connection that the engine attempts in parallel with those of libcurl.
struct Rival {
    let connection: SocketTable.Connection
    let endpoint: SocketAddress
    let port: UInt16
    var isConnected = false
}

// Happy Eyeballs (RFC 8305): libcurl attempts the two families of addresses in parallel, and the addresses of one
// family one after the other. If an attempt takes longer than the delay, the engine attempts further endpoints with its
// own sockets. The first of these sockets that is connected replaces a socket that libcurl waits for.
extension EasyHandle {
    /// The maximum number of connections that the engine attempts at once for a transfer.
    private static let mostRivals = 8

    /// Returns the endpoint for an attempt of libcurl; nil to use the one that libcurl has selected.
    ///
    /// - Parameters:
    ///   - family: The number of bytes of libcurl's address.
    ///   - address: The address and port that libcurl has selected.
    func nextEndpoint(
        _ family: Int, _ address: UnsafeMutablePointer<curl_sockaddr>, _ origin: Origin?
    ) -> SocketAddress? {
        guard let name = transfer?.loopState.name, let origin else { return nil }
        if attempts == nil {
            let configuration = transport.limits
            let delay = configuration.tcp.fast_open ? nil : configuration.attemptDelay
            attempts = ConnectionAttempts(
                name.endpoints(of: origin.peer, at: origin), configuration.addressOrder, turn: origin.turn,
                delay: delay)
            if configuration.addressOrder != .asResolved { origin.turn += 1 }
            defaultPort = curlew_address_port(address)
        }
        // The next `race()` gives the connected socket to libcurl.
        if let rival = rivals.first(where: \.isConnected) { return rival.endpoint }
        guard let endpoint = attempts?.next(family, running: rivals.map(\.endpoint), now: Monotonic.now()) else {
            return nil
        }
        for rival in rivals where rival.endpoint == endpoint { drop(rival) }
        return endpoint
    }

    /// Attempts the next endpoint if it is due, and gives libcurl a socket of the engine if one is connected.
    func race() {
        if attempts == nil { return }
        // A socket of libcurl is connected. libcurl still waits for events of it during TLS or with a proxy.
        if opened.contains(where: { isAwaited($0) && curlew_remote_port($0.descriptor) >= 0 }) { return endAttempts() }
        if let rival = rivals.first(where: \.isConnected) { return replaceSocket(by: rival) }
        let now = Monotonic.now()
        while let next = attempts?.nextAt, next <= now, mayBegin,
            let endpoint = attempts?.nextBesideLibcurl(now: now)
        {
            if !begin(endpoint) { attempts?.hurry(now: now) }
        }
    }

    /// The time at which `race()` attempts the next endpoint.
    var raceAt: UInt64 { mayBegin ? attempts?.nextAt ?? Monotonic.never : Monotonic.never }

    /// Whether the engine may attempt another endpoint.
    private var mayBegin: Bool {
        rivals.count < Self.mostRivals && !rivals.contains(where: \.isConnected)
            && transport.sockets.open < transport.limits.connections
    }

    /// Handles an event of a connection of the engine.
    ///
    /// - Returns: False if the descriptor belongs to libcurl.
    func rivalIsReady(_ descriptor: CInt) -> Bool {
        guard let index = rivals.firstIndex(where: { $0.connection.descriptor == descriptor && !$0.isConnected }) else {
            return false
        }
        let failure = curlew_socket_error(descriptor)
        // The event may be older than the socket.
        if failure == 0, curlew_remote_port(descriptor) < 0 { return true }
        if failure == 0 {
            rivals[index].isConnected = true
            transport.sockets.watch(descriptor, what: CURL_POLL_REMOVE, domain: domain.number)
        } else {
            drop(rivals[index])
            attempts?.hurry(now: Monotonic.now())
        }
        race()
        return true
    }

    /// Ends the attempts of the engine.
    func endAttempts() {
        if attempts == nil { return }
        attempts = nil
        for rival in rivals { drop(rival) }
    }

    /// Whether libcurl waits for a TCP socket.
    private func isAwaited(_ connection: SocketTable.Connection) -> Bool {
        guard let index = transport.sockets.index(of: connection) else { return false }
        return !transport.sockets.entries[index].isDatagram && transport.sockets.wants(connection.descriptor)
    }

    private func begin(_ endpoint: SocketAddress) -> Bool {
        let bytes = endpoint.bytes
        let descriptor = curlew_stream_socket(CInt(bytes.count))
        guard descriptor >= 0 else { return false }
        do throws(SocketRules.Refusal) { try prepare(descriptor, for: bytes) } catch {
            close(descriptor)
            return false
        }
        let port = endpoint.port ?? defaultPort
        guard curlew_connect(descriptor, bytes, CInt(bytes.count), port) == 0 else {
            close(descriptor)
            return false
        }
        let connection = transport.sockets.opened(descriptor, to: nil, in: domain.number)
        transport.sockets.watch(descriptor, what: CURL_POLL_OUT, domain: domain.number)
        rivals.append(Rival(connection: connection, endpoint: endpoint, port: port))
        return true
    }

    private func replaceSocket(by rival: Rival) {
        let awaited = opened.filter { isAwaited($0) }
        let isIPv6 = rival.endpoint.bytes.count == 16
        // Without an awaited socket, libcurl is about to open the next one.
        guard
            let socket = awaited.first(where: { (curlew_local_port($0.descriptor) & 1 << 16 != 0) == isIPv6 })
                ?? awaited.first
        else { return }
        let endpoint = SocketAddress(rival.endpoint.ip, port: rival.port)
        if transport.sockets.replace(socket, by: rival.connection, to: endpoint) {
            self.endpoint = endpoint
            endAttempts()
        } else {
            drop(rival)
        }
    }

    private func drop(_ rival: Rival) {
        rivals.removeAll { $0.connection == rival.connection }
        transport.sockets.closed(rival.connection.descriptor)
        close(rival.connection.descriptor)
    }
}
