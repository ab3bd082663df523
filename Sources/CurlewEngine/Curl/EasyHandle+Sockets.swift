// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

// The sockets of a handle while it connects, and the judges of their TLS handshakes.
extension EasyHandle {
    /// The proxy of the route, if connections to it use TLS.
    var secureProxy: Route.Proxy? {
        guard let proxy = domain.trust.route?.proxy, proxy.scheme == .https else { return nil }
        return proxy
    }

    /// Creates the judge of the TLS handshake that begins: with an https proxy first, then with the server.
    func makeJudge(for transfer: EngineTransfer) -> ConnectionJudge {
        func judge(_ domain: TrustDomain, _ host: String, _ port: UInt16, isProxy: Bool) -> ConnectionJudge {
            ConnectionJudge(
                domain: domain, host: host, port: port, isProxy: isProxy, keyLog: transport.limits.tls.keyLog,
                sessionsEnd: sessionsEnd, clock: transport.loop.clock)
        }
        if proxyJudge == nil, let proxy = secureProxy, let trust = proxy.trust {
            let made = judge(trust, proxy.host, proxy.port, isProxy: true)
            proxyJudge = made
            return made
        }
        let made = judge(transfer.plan.trust, transfer.plan.host, transfer.plan.port, isProxy: false)
        self.judge = made
        return made
    }

    /// Whether a judge has accepted the peers of the connection, so that the request may be sent.
    func isAccepted(for transfer: EngineTransfer) -> Bool {
        if transfer.plan.isSecure {
            return ConnectionJudge.ofConnection(under: self)?.acceptRequest(on: self) == true
        }
        // Newer versions of libcurl do not report the TLS connection to a proxy. The engine does not store TLS sessions
        // with proxies, so each handshake has a judge, and only an accepted connection is used again.
        return secureProxy == nil || opened.isEmpty || proxyJudge?.isAccepted == true
    }

    /// Selects the endpoint of a new socket of libcurl, and sets the options of the socket before it connects.
    ///
    /// - Returns: The endpoint, if it replaces the one that libcurl has selected.
    /// - Throws: The rule that forbids the connection.
    func prepare(
        _ descriptor: CInt, for address: UnsafeMutablePointer<curl_sockaddr>, to origin: Origin?
    ) throws(SocketRules.Refusal) -> SocketAddress? {
        var bytes = [UInt8](repeating: 0, count: 16)
        bytes.removeLast(16 - Int(curlew_address_bytes(address, &bytes)))
        // libcurl attempts HTTP/3 in parallel with TCP, with the same addresses.
        let endpoint = isDatagram(address) ? nil : nextEndpoint(bytes.count, address, origin)
        if let endpoint {
            bytes = endpoint.bytes
            curlew_address_replace(address, bytes, endpoint.port ?? 0)
        }
        try prepare(descriptor, for: bytes)
        return endpoint
    }

    /// Sets the options of a socket before it connects to an address.
    func prepare(_ descriptor: CInt, for address: [UInt8]) throws(SocketRules.Refusal) {
        let configuration = transport.limits
        var options = configuration.tcp
        curlew_tcp_set(descriptor, &options)
        if let route = domain.trust.route, route.trafficClass != 0 {
            curlew_set_traffic_class(descriptor, CInt(route.trafficClass))
        }
        if !configuration.socketRules.isEmpty { try configuration.socketRules.apply(to: descriptor, for: address) }
    }

    /// Whether libcurl opens a UDP socket, which it uses for HTTP/3.
    func isDatagram(_ address: UnsafeMutablePointer<curl_sockaddr>) -> Bool {
        address.pointee.socktype & 0xF == CInt(SOCK_DGRAM.rawValue)
    }

    /// Removes sockets from the table that were opened and never became a connection.
    func forgetOpened(in sockets: SocketTable) {
        endAttempts()
        if opened.isEmpty { return }
        sockets.forgetUnconnected(opened)
        opened = []
    }

    /// Makes libcurl continue after a connection attempt failed.
    ///
    /// libcurl 7.88 selects the next address of the same family without connecting to it, and no event calls libcurl
    /// for seconds.
    ///
    /// - Returns: False once no more sockets have to be checked.
    func keepConnecting() -> Bool {
        guard let transfer, !opened.isEmpty else {
            checkedSockets = 0
            return false
        }
        race()
        guard checkedSockets != opened.count, !opened.contains(where: { transport.sockets.wants($0.descriptor) })
        else {
            return true
        }
        checkedSockets = opened.count
        // Toggling the pause state makes libcurl check the handle.
        let pauses =
            (transfer.loopState.isReceivingPaused ? CURLPAUSE_RECV : 0)
            | (transfer.loopState.isSendingPaused ? CURLPAUSE_SEND : 0)
        curl_easy_pause(curl, pauses ^ CURLPAUSE_SEND)
        curl_easy_pause(curl, pauses)
        return true
    }
}
