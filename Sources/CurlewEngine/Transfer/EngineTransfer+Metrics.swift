// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

extension EngineTransfer {
    /// Returns the times and sizes that libcurl and the loop have measured so far.
    func metrics(by handle: EasyHandle) -> RawMetrics {
        let curl = handle.curl
        var metrics = RawMetrics()
        metrics.remark = plan.target.remark
        metrics.queued = loopState.admittedAt &- min(startedAt, loopState.admittedAt)
        // libcurl's times start when libcurl starts the transfer, so add the time since the slot for the look-up and
        // retries.
        let before = Int64((loopState.launchedAt &- min(loopState.admittedAt, loopState.launchedAt)) / 1000)
        func time(_ info: CURLINFO) -> Int64 {
            let time = curlew_get_offset(curl, info)
            return time > 0 ? before + time : 0
        }
        metrics.readyToSend = time(CURLINFO_PRETRANSFER_TIME_T)
        metrics.isReused = metrics.readyToSend > 0 && curlew_get_long(curl, CURLINFO_NUM_CONNECTS) == 0
        if !metrics.isReused {
            metrics.resolved = max(before, time(CURLINFO_NAMELOOKUP_TIME_T))
            metrics.connected = time(CURLINFO_CONNECT_TIME_T)
            metrics.secured = time(CURLINFO_APPCONNECT_TIME_T)
        }
        metrics.firstByte = time(CURLINFO_STARTTRANSFER_TIME_T)
        metrics.total = before + curlew_get_offset(curl, CURLINFO_TOTAL_TIME_T)
        if loopState.hasInformational {
            // libcurl counts an informational response as the first byte, while the server is still working. libcurl's
            // clock starts slightly after the loop's, so the loop's time may exceed the total.
            let began = loopState.finalHeadBeganAt
            let first = began > loopState.admittedAt ? Int64((began - loopState.admittedAt) / 1000) : 0
            metrics.firstByte = min(first, metrics.total)
        }
        if loopState.bodySentAt > loopState.admittedAt {
            metrics.bodySent = Int64((loopState.bodySentAt - loopState.admittedAt) / 1000)
        }
        metrics.requestHeadBytes = Int64(curlew_get_long(curl, CURLINFO_REQUEST_SIZE))
        metrics.requestBodyBytes = loopState.counters.sent
        if case .bytes(let bytes) = upload, !isBodyPulled {
            // libcurl counts a body that was sent with the head as a part of the head.
            metrics.requestHeadBytes = max(0, metrics.requestHeadBytes - Int64(bytes.count))
        }
        metrics.responseHeadBytes = Int64(curlew_get_long(curl, CURLINFO_HEADER_SIZE))
        metrics.responseBodyBytes = loopState.counters.received
        metrics.version = curlew_get_long(curl, CURLINFO_HTTP_VERSION)
        if loop.configuration.version == .http3 {
            let usesTCP = loopState.connection.map { !handle.transport.sockets.isDatagram($0) } ?? false
            metrics.withoutHTTP3 = reasonAgainstHTTP3 ?? (usesTCP ? .otherWasFirst : nil)
        }
        if let address = curlew_get_string(curl, CURLINFO_PRIMARY_IP) {
            metrics.remoteAddress = String(cString: address)
        }
        if let address = curlew_get_string(curl, CURLINFO_LOCAL_IP) { metrics.localAddress = String(cString: address) }
        metrics.remotePort = curlew_get_long(curl, CURLINFO_PRIMARY_PORT)
        metrics.localPort = curlew_get_long(curl, CURLINFO_LOCAL_PORT)
        if let endpoint = handle.endpoint {
            (metrics.remoteAddress, metrics.remotePort) = (endpoint.ip, Int(endpoint.port ?? 0))
        }
        if let path = plan.target.route?.socketName, !metrics.remoteAddress.isEmpty || metrics.readyToSend > 0 {
            // libcurl reports the port of the URL, and no name for an abstract socket.
            (metrics.remoteAddress, metrics.remotePort, metrics.localAddress) = (path, 0, "")
        }
        if let tls = loopState.tls {
            metrics.tlsVersion = tls.version.map { String(cString: $0) }
            metrics.tlsCipher = tls.cipher.map { String(cString: $0) }
            metrics.isResumed = tls.resumed
            metrics.certificate = loopState.certificate
        }
        return metrics
    }
}
