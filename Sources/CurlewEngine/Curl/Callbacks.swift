// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc
internal import CurlewSupport

// Callbacks that libcurl calls on the loop thread: C functions that find their Swift object and forward the call. A
// handle outlives its CURL and a domain outlives its CURLM, so the pointers need no reference.

func setEngineCallbacks(on handle: EasyHandle) {
    curlew_set_callbacks(
        handle.curl, Unmanaged.passUnretained(handle).toOpaque(), bodyArrived, headLineArrived, bodyWanted, bodyRewound,
        socketOpened, socketClosed, tlsContextMade)
    curlew_set_prerequest(handle.curl, requestIsNext, Unmanaged.passUnretained(handle).toOpaque())
    // Connections outlive handles, so the callback that closes a socket gets the transport.
    _ = curlew_set_pointer(
        handle.curl, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(handle.transport).toOpaque())
}

func setEngineCallbacks(on domain: CurlDomain) {
    curlew_multi_set_callbacks(domain.multi, Unmanaged.passUnretained(domain).toOpaque(), socketChanged, timerChanged)
}

private func handle(_ context: UnsafeMutableRawPointer?) -> EasyHandle? {
    context.map { Unmanaged<EasyHandle>.fromOpaque($0).takeUnretainedValue() }
}

private func bodyArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let context else { return 0 }
    let isReceived = Unmanaged<EasyHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { handle in
        let transport = handle.transport
        guard let transfer = handle.transfer,
            transfer.receive(UnsafeRawPointer(bytes), size &* count, handle.deliveries)
        else { return false }
        if transport.throttle.receiving != nil || transfer.loopState.throttle != nil {
            transport.charge(transfer, received: size &* count)
        }
        return true
    }
    return isReceived ? size &* count : 0
}

private func headLineArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let context else { return 0 }
    let line = UnsafeRawBufferPointer(start: bytes, count: size &* count)
    return Unmanaged<EasyHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { handle in
        EngineTransfer.receiveHeadLine(line, by: handle) ? size &* count : 0
    }
}

private func bodyWanted(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let buffer, let handle = handle(context), let transfer = handle.transfer else {
        return Int(CURL_READFUNC_ABORT)
    }
    let transport = handle.transport
    let allowance = transfer.loopState.isUserPaused ? nil : transport.allowance(for: transfer, of: size &* count)
    let pulled = allowance.map { transfer.pull(into: UnsafeMutableRawPointer(buffer), $0, handle.deliveries) } ?? .wait
    switch pulled {
    case .bytes(let count):
        if transport.throttle.sending != nil || transfer.loopState.throttle != nil {
            transport.charge(transfer, sent: count)
        }
        return count
    case .wait:
        transfer.loopState.isSendingPaused = true
        return Int(CURL_READFUNC_PAUSE)
    case .failed: return Int(CURL_READFUNC_ABORT)
    }
}

private func bodyRewound(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: CInt) -> CInt {
    guard offset == 0, origin == SEEK_SET, let transfer = handle(context)?.transfer else {
        return CURL_SEEKFUNC_CANTSEEK
    }
    return transfer.rewindBody() ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_CANTSEEK
}

private func socketOpened(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    // A handle without a transfer must not open a connection; it only joins an open one.
    guard let address, let handle = handle(context), handle.flushing == nil else { return -1 }
    handle.proxyJudge = nil
    let origin = handle.transfer?.loopState.origin
    if let origin { handle.transport.closeExcessIdle(for: origin, in: handle.domain) }
    let type = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.pointee.family, type, address.pointee.protocol)
    if descriptor >= 0 {
        let endpoint: SocketAddress?
        do throws(SocketRules.Refusal) {
            endpoint = try handle.prepare(descriptor, for: address, to: origin)
            handle.transfer?.loopState.socketFailure = nil
        } catch {
            close(descriptor)
            // An attempt to another address tells more than this refusal.
            if handle.opened.isEmpty {
                handle.transfer?.loopState.socketFailure = LoopState.SocketFailure(.socketRefused(error))
            }
            return -1
        }
        if handle.attempts != nil, !handle.transport.connecting.contains(where: { $0 === handle }) {
            handle.transport.connecting.append(handle)
        }
        let connection = handle.transport.sockets.opened(
            descriptor, to: origin, in: handle.domain.number, isDatagram: handle.isDatagram(address))
        if let endpoint, endpoint.port != nil {
            handle.transport.sockets.learn(connection, endpoint)
            handle.endpoint = endpoint
        }
        handle.opened.append(connection)
    } else {
        handle.transfer?.noteSocketFailure(errno)
    }
    return descriptor
}

/// Called right before libcurl sends a request over a connection.
///
/// libcurl retries a request with any method if a reused connection dies without a response.
private func requestIsNext(
    _ context: UnsafeMutableRawPointer?, _ remote: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ remotePort: CInt, _ localPort: CInt
) -> CInt {
    guard let context else { return CURL_PREREQFUNC_ABORT }
    return Unmanaged<EasyHandle>.fromOpaque(context)._withUnsafeGuaranteedRef { handle in
        requestIsNext(handle, remote, local, remotePort, localPort)
    }
}

private func requestIsNext(
    _ handle: EasyHandle, _ remote: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ remotePort: CInt, _ localPort: CInt
) -> CInt {
    let isIPv6 = local.map { strchr($0, CInt(UInt8(ascii: ":"))) != nil } ?? false
    guard let transfer = handle.transfer else {
        handle.joined(over: Origin.descriptorKey(port: Int(localPort), isIPv6: isIPv6))
        return CURL_PREREQFUNC_ABORT
    }
    guard handle.isAccepted(for: transfer) else {
        transfer.loopState.abort = .notEvaluated
        return CURL_PREREQFUNC_ABORT
    }
    transfer.loopState.sends += 1
    let transport = handle.transport
    let sockets = transport.sockets
    // For an HTTP/2 connection that has ended, libcurl 7.88 reports the same result as for a refused stream.
    let wasGood = transfer.loopState.connection.map { sockets.canOnlyBeRefused(oneOf: $0) } ?? false
    let wasShared = transfer.loopState.isShared
    let isReused = handle.opened.isEmpty
    if let origin = transfer.loopState.origin {
        if transfer.loopState.connection != nil { transfer.leaveConnection() }
        let connection = sockets.join(
            origin, port: Int(localPort), isIPv6: isIPv6, mayBeDatagram: handle.mayUseHTTP3, opened: handle.opened)
        handle.forgetOpened(in: sockets)
        transfer.loopState.connection = connection
        handle.endpoint = sockets.endpoint(of: connection)
        transfer.loopState.isShared = sockets.version(of: connection) == .http2
        transfer.loopState.isStreamEnded = nil
        if sockets.version(of: connection) != .http1 { transport.streams.expect(handle) }
        if !isReused || transfer.loopState.opensConnection { transport.recordConnection(transfer, to: origin) }
    }
    if transfer.plan.connectsOnly {
        transfer.loopState.abort = .connectedOnly
        if let connection = transfer.loopState.connection {
            sockets.undoRequest(connection)
            // The settings of an HTTP/2 server must not count as an unsolicited response.
            if transfer.loopState.origin?.isShared == true { sockets.learn(connection, .http2) }
        }
        handle.stopBeforeSending()
        return CURL_PREREQFUNC_OK
    }
    if transport.stopAfterConnecting(transfer, over: transfer.loopState.connection) { return CURL_PREREQFUNC_ABORT }
    if transfer.loopState.sends > 1 {
        guard prepareRepeat(handle, transfer, wasRefused: wasShared && wasGood) else { return CURL_PREREQFUNC_ABORT }
        transfer.sendRestartEvent()
    }
    if transport.needsMessages(for: transfer) { handle.recordMessages() } else { handle.stopRecording() }
    let socketName = transfer.plan.target.route?.socketName
    let endpoint = handle.endpoint
    transfer.sendConnectionEvent(
        remote: socketName ?? endpoint.map { authority($0.ip, CInt($0.port ?? 0)) } ?? text(of: remote, remotePort),
        isReused: isReused, handle)
    return CURL_PREREQFUNC_OK
}

private func text(of address: UnsafeMutablePointer<CChar>?, _ port: CInt) -> String {
    guard let address else { return "" }
    return authority(String(cString: address), port)
}

/// Whether libcurl may send the request once more; if not, this sets the reason in `abort`.
/// - Parameter wasRefused: Whether a refusal is the only possible cause over HTTP/2, unless libcurl wrote a message.
private func prepareRepeat(_ handle: EasyHandle, _ transfer: EngineTransfer, wasRefused: Bool) -> Bool {
    handle.hasRetried = true
    // Over a new connection, libcurl resends only requests that the server has refused without processing them; over
    // HTTP/2 it then writes no message about a failure.
    let isRefused =
        curlew_get_long(handle.curl, CURLINFO_NUM_CONNECTS) >= transfer.loopState.sends
        || wasRefused && !handle.hasDetail
    if !transfer.loopState.isHeadComplete {
        transfer.loopState.forgetHead()
        if isRefused && transfer.loopState.sends > (transfer.loopState.refusals == 0 ? 3 : 1) {
            transfer.loopState.abort = .streamRefused
            return false
        }
        if isRefused || transfer.plan.isRetriable { return true }
    }
    transfer.loopState.abort = transfer.loopState.isHeadComplete ? .responseTruncated : .notRetried
    return false
}

private func socketClosed(_ context: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t) -> CInt {
    if let context {
        Unmanaged<CurlTransport>.fromOpaque(context).takeUnretainedValue().sockets.closed(descriptor)
    }
    return close(descriptor)
}

private func tlsContextMade(
    _ easy: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?, _ owner: UnsafeMutableRawPointer?
) -> CURLcode {
    guard let context, let handle = handle(owner), let transfer = handle.transfer else { return CURLE_SSL_CERTPROBLEM }
    let judge = handle.makeJudge(for: transfer)
    return judge.install(in: context, handle.transport.limits.tls) ? CURLE_OK : CURLE_SSL_CACERT_BADFILE
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ descriptor: curl_socket_t, _ what: CInt, _ context: UnsafeMutableRawPointer?,
    _ socket: UnsafeMutableRawPointer?
) -> CInt {
    guard let context else { return 0 }
    Unmanaged<CurlDomain>.fromOpaque(context)._withUnsafeGuaranteedRef { domain in
        domain.sockets.watch(descriptor, what: what, domain: domain.number)
    }
    if what == CURL_POLL_OUT || what == CURL_POLL_REMOVE,
        let transfer = handle(curlew_get_private(easy))?.transfer
    {
        transfer.noteReadingStopped(from: descriptor, sends: what == CURL_POLL_OUT)
    }
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> CInt {
    guard let context else { return 0 }
    Unmanaged<CurlDomain>.fromOpaque(context)._withUnsafeGuaranteedRef { domain in
        // The deadline is never early, because libcurl does not set the same timer twice.
        domain.deadline =
            switch milliseconds {
            case ..<0: Monotonic.never
            case 0: 0
            default: Monotonic.now() &+ UInt64(milliseconds) &* 1_000_000
            }
    }
    return 0
}
