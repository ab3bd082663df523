// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

extension CurlTransport {
    /// Why libcurl's end is not success, nil when it is.
    func failure(of handle: EasyHandle, _ transfer: EngineTransfer, _ code: CURLcode) -> EngineFailure? {
        if let reason = transfer.wire.abort { return EngineFailure(reason, phase: phase(of: handle, transfer)) }
        if code == CURLE_OK {
            // A connection closed inside the head passes for success in libcurl; the missing empty line tells.
            guard transfer.wire.isHeadComplete else {
                return EngineFailure(.headTruncated, phase: phase(of: handle, transfer))
            }
            if case .pipe(let pipe) = transfer.plan.upload, pipe.hasOverrun, let length = pipe.length {
                return EngineFailure(.bodyTooLong(declared: length), phase: .sending)
            }
            return nil
        }
        let phase = phase(of: handle, transfer)
        if let refusal = handle.gate?.refusal, !transfer.wire.isHeadComplete {
            return EngineFailure(.untrusted(refusal), phase: .securing)
        }
        if transfer.wire.socketErrno != 0, code == CURLE_COULDNT_CONNECT {
            return EngineFailure(.noResources(errno: transfer.wire.socketErrno), phase: .connecting)
        }
        if code == CURLE_OPERATION_TIMEDOUT {
            return EngineFailure(.timedOut(.connect), phase: phase)
        }
        return EngineFailure(.curl(code: code.rawValue, text: handle.text(for: code)), phase: phase)
    }

    /// How far a transfer has come, from what libcurl has measured.
    func phase(of handle: EasyHandle, _ transfer: EngineTransfer) -> EngineFailure.Phase {
        if transfer.wire.isHeadComplete || !transfer.wire.head.isEmpty { return .receiving }
        let curl = handle.curl
        if curlew_get_offset(curl, CURLINFO_PRETRANSFER_TIME_T) == 0 {
            // The gate is made when TLS begins, which libcurl's own times tell only when it has succeeded.
            if handle.gate != nil { return .securing }
            if curlew_get_offset(curl, CURLINFO_NAMELOOKUP_TIME_T) == 0 { return .resolving }
            return .connecting
        }
        guard transfer.wire.bodySentAt == 0 else { return .waiting }
        switch transfer.plan.upload {
        case .none: return .waiting
        case .bytes(let bytes): return bytes.count < EasyHandle.smallBody ? .waiting : .sending
        case .pipe: return .sending
        }
    }

    func metrics(of handle: EasyHandle, _ transfer: EngineTransfer) -> RawMetrics {
        let curl = handle.curl
        let wire = transfer.wire
        var metrics = RawMetrics()
        metrics.queued = wire.admittedAt &- min(transfer.startedAt, wire.admittedAt)
        metrics.resolved = curlew_get_offset(curl, CURLINFO_NAMELOOKUP_TIME_T)
        metrics.connected = curlew_get_offset(curl, CURLINFO_CONNECT_TIME_T)
        metrics.secured = curlew_get_offset(curl, CURLINFO_APPCONNECT_TIME_T)
        metrics.readyToSend = curlew_get_offset(curl, CURLINFO_PRETRANSFER_TIME_T)
        metrics.firstByte = curlew_get_offset(curl, CURLINFO_STARTTRANSFER_TIME_T)
        metrics.total = curlew_get_offset(curl, CURLINFO_TOTAL_TIME_T)
        if wire.bodySentAt > wire.admittedAt { metrics.bodySent = Int64((wire.bodySentAt - wire.admittedAt) / 1000) }
        metrics.requestHeadBytes = Int64(curlew_get_long(curl, CURLINFO_REQUEST_SIZE))
        metrics.requestBodyBytes = wire.counters.sent
        if case .bytes(let bytes) = transfer.plan.upload, bytes.count < EasyHandle.smallBody {
            // libcurl counts a body that left with the head as part of it.
            metrics.requestHeadBytes = max(0, metrics.requestHeadBytes - Int64(bytes.count))
        }
        metrics.responseHeadBytes = Int64(curlew_get_long(curl, CURLINFO_HEADER_SIZE))
        metrics.responseBodyBytes = wire.counters.received
        metrics.version = curlew_get_long(curl, CURLINFO_HTTP_VERSION)
        metrics.isReused = curlew_get_long(curl, CURLINFO_NUM_CONNECTS) == 0 && metrics.readyToSend > 0
        if let address = curlew_get_string(curl, CURLINFO_PRIMARY_IP) {
            metrics.remoteAddress = String(cString: address)
        }
        if let address = curlew_get_string(curl, CURLINFO_LOCAL_IP) { metrics.localAddress = String(cString: address) }
        metrics.remotePort = curlew_get_long(curl, CURLINFO_PRIMARY_PORT)
        metrics.localPort = curlew_get_long(curl, CURLINFO_LOCAL_PORT)
        if let tls = wire.tls {
            metrics.tlsVersion = tls.version.map { String(cString: $0) }
            metrics.tlsCipher = tls.cipher.map { String(cString: $0) }
            metrics.isResumed = tls.resumed
        }
        return metrics
    }
}
