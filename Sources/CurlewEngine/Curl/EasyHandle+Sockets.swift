// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

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

    /// Sets the options of a new socket before it connects, and replaces the address according to the address order.
    ///
    /// - Throws: The rule that forbids the connection.
    func prepare(
        _ descriptor: CInt, for address: UnsafeMutablePointer<curl_sockaddr>, to origin: Origin?
    ) throws(SocketRules.Refusal) {
        let configuration = transport.limits
        var options = configuration.tcp
        curlew_tcp_set(descriptor, &options)
        if let route = domain.trust.route, route.trafficClass != 0 {
            curlew_set_traffic_class(descriptor, CInt(route.trafficClass))
        }
        if configuration.addressOrder != .asResolved, let origin, let name = transfer?.loopState.name {
            if opened.isEmpty {
                order = AddressOrder(name.addresses, configuration.addressOrder, turn: origin.turn)
                origin.turn += 1
            }
            order?.apply(to: address)
        }
        if !configuration.socketRules.isEmpty {
            try configuration.socketRules.apply(to: descriptor, for: UnsafePointer(address))
        }
    }

    /// Removes sockets from the table that were opened and never became a connection.
    func forgetOpened(in sockets: SocketTable) {
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
