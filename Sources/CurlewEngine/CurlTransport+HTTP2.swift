// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

// Handling of HTTP/2 connections and streams in cases that libcurl 7.88 does not handle.
extension CurlTransport {
    /// The longest time that a connection may have been silent, in nanoseconds, to be kept after its only stream was
    /// cancelled.
    private static let maximumSilence: UInt64 = 5_000_000_000

    /// Resets the stream of the last transfer on a connection and keeps the connection.
    ///
    /// A connection that was silent for seconds may be dead. libcurl 7.88 keeps unread bytes when two streams share a
    /// connection, or when the transfer reads less than a full buffer, and drops them before the next transfer. A body
    /// that is still being sent may delay RST_STREAM. Newer versions send RST_STREAM with the next request, however
    /// late that is.
    ///
    /// - Returns: False if keeping the connection is not safe.
    func resetAndKeep(
        _ connection: SocketTable.Connection, after transfer: EngineTransfer, by handle: EasyHandle
    ) -> Bool {
        guard !sharesPlainHTTP2, !transfer.isExclusive, !transfer.loopState.isReceivingPaused,
            transfer.loopState.headBytes <= 16 << 10, handle.receiveBuffer >= 64 << 10,
            !transfer.isBodyPulled || transfer.loopState.bodySentAt > 0,
            now &- min(now, transfer.loopState.lastActivity) < CurlTransport.maximumSilence,
            let port = sockets.keyOfUnshared(connection)
        else { return false }
        wantsTurn = true
        guard handle.flush(over: port) else { return false }
        sockets.learn(connection, .http2)
        return true
    }

    // MARK: Refused requests

    /// Nanoseconds that a refused request waits on its connection for the server's settings, one value per attempt.
    private static let pauses: [UInt64] = [100_000_000, 250_000_000, 500_000_000, 1_000_000_000]

    /// Retries a request that the server did not process; any method is safe to retry (RFC 9113 §6.8 and §8.7).
    ///
    /// A server may allow no streams at first, and report that while the request is already on its way (§6.5.2). After
    /// a refusal, the engine therefore opens a connection without a request, and sends the request after the settings
    /// have arrived: nghttp2 then delays the request until the server allows a stream.
    ///
    /// - Returns: Whether the request is sent again; nil if another kind of failure ended it.
    func retryRefused(
        _ handle: EasyHandle, _ transfer: EngineTransfer, after reason: EngineFailure.Reason
    ) -> Bool? {
        switch reason {
        case .connectedFirst:
            return beginRetry(
                handle, transfer, overFresh: false, after: CurlTransport.pauses[transfer.loopState.refusals - 1])
        case .streamRefused where !handle.isExcludedByGoAway:
            // Newer versions of libcurl retry each attempt five times by themselves.
            let most = sharesPlainHTTP2 ? 1 : CurlTransport.pauses.count
            guard transfer.loopState.headBytes == 0, transfer.loopState.refusals < most else { return false }
            transfer.loopState.refusals += 1
            transfer.loopState.connectsFirst = true
            return beginRetry(handle, transfer, overFresh: false)
        case .streamRefused, .curl, .notRetried:
            guard handle.isExcludedByGoAway, transfer.loopState.connectionRetries == 0,
                transfer.loopState.headBytes == 0
            else {
                return nil
            }
            return beginRetry(handle, transfer, overFresh: true)
        default: return nil
        }
    }

    /// Whether a request needs only an open connection for now, and stops before it is sent.
    func stopAfterConnecting(_ transfer: EngineTransfer, over connection: SocketTable.Connection?) -> Bool {
        guard transfer.loopState.connectsFirst else { return false }
        // This happens once, before the request is first sent; the server may have processed a request that libcurl
        // retries later.
        transfer.loopState.connectsFirst = false
        guard transfer.loopState.sends == 1, let connection, transfer.loopState.origin?.isShared == true else {
            return false
        }
        transfer.loopState.abort = .connectedFirst
        // The socket table must not take the settings frame for an unsolicited response.
        sockets.learn(connection, .http2)
        return true
    }

    /// Returns another handle if libcurl has retried with this one: libcurl counts the retries of a handle over its
    /// whole life.
    func renewed(_ handle: EasyHandle) -> EasyHandle {
        guard handle.hasRetried, let transfer = handle.transfer, let fresh = handle.domain.takeHandle() else {
            return handle
        }
        fresh.index = handle.index
        inUse[fresh.index] = fresh
        handle.domain.recycle(handle)
        fresh.transfer = transfer
        transfer.loopState.handle = fresh
        return fresh
    }

    /// Sends the requests whose pause before a retry has ended.
    func endRetryPauses(_ now: UInt64) {
        let due = pausedRetries.filter { $0.until <= now }
        pausedRetries.removeAll { $0.until <= now }
        firstRetryAt = pausedRetries.map(\.until).min() ?? Monotonic.never
        for (handle, _) in due where handle.transfer != nil {
            handle.loopState?.pointee.launchedAt = now
            handle.loopState?.pointee.lastActivity = now
            add(handle)
        }
    }

    /// Whether libcurl's messages must be recorded to see that GOAWAY excludes a request, which costs a few
    /// microseconds.
    func needsMessages(for transfer: EngineTransfer) -> Bool {
        guard !sharesPlainHTTP2, !transfer.plan.isIdempotent, let connection = transfer.loopState.connection else {
            return false
        }
        switch sockets.version(of: connection) {
        case .http1, .http3: return false
        case .http2: return true
        case .unknown: return transfer.loopState.origin?.isShared == true || limits.version == .http2PriorKnowledge
        }
    }
}
