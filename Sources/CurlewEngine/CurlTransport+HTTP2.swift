// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

// What becomes of HTTP/2 connections and streams where libcurl 7.88 alone would lose them.
extension CurlTransport {
    /// How long a connection may have been silent, in nanoseconds, to be kept after its only stream was cut.
    private static let silenceOfKept: UInt64 = 5_000_000_000

    /// Resets the stream of the last transfer on a connection and keeps the connection; false where that is not safe.
    ///
    /// A connection that was silent for seconds may be dead. libcurl 7.88 holds bytes that it has not read to their end
    /// when two streams share a connection, or when less than a buffer is wanted of it, and drops them before the next
    /// transfer. A body that was still being sent may wait in front of RST_STREAM. Newer versions send RST_STREAM with the
    /// next request, however late that is.
    func keeps(
        _ connection: SocketTable.Connection, after transfer: EngineTransfer, by handle: EasyHandle
    ) -> Bool {
        guard !sharesPlainHTTP2, !transfer.isAlone, !transfer.wire.isReceivingPaused,
            transfer.wire.headBytes <= 16 << 10, handle.receiveBuffer >= 64 << 10,
            !transfer.isBodyPulled || transfer.wire.bodySentAt > 0,
            now &- min(now, transfer.wire.lastActivity) < CurlTransport.silenceOfKept,
            let port = sockets.portOfLone(connection)
        else { return false }
        wantsTurn = true
        guard handle.flush(over: port) else { return false }
        sockets.learn(connection, .http2)
        return true
    }

    // MARK: Refused requests

    /// How long a refused request waits over its connection for the server's settings, in nanoseconds, each time.
    private static let pauses: [UInt64] = [100_000_000, 250_000_000, 500_000_000, 1_000_000_000]

    /// Sends a request again that the server has done nothing about, whatever its method (RFC 9113 §6.8 and §8.7); nil
    /// when something else has happened to it.
    ///
    /// A server may allow no streams at first, and say so while the request is on its way (§6.5.2). So after a refusal a
    /// connection is made without a request, and the request follows when the settings have come: nghttp2 then holds it
    /// until there may be a stream.
    func restartRefused(
        _ handle: EasyHandle, _ transfer: EngineTransfer, after reason: EngineFailure.Reason
    ) -> Bool? {
        switch reason {
        case .connectedFirst:
            return beginAgain(
                handle, transfer, overFresh: false, after: CurlTransport.pauses[transfer.wire.refusals - 1])
        case .streamRefused where !handle.isLeftOut:
            // Newer versions send it five times by themselves, each time.
            let most = sharesPlainHTTP2 ? 1 : CurlTransport.pauses.count
            guard transfer.wire.headBytes == 0, transfer.wire.refusals < most else { return false }
            transfer.wire.refusals += 1
            transfer.wire.connectsFirst = true
            return beginAgain(handle, transfer, overFresh: false)
        case .streamRefused, .curl, .notRepeated:
            guard handle.isLeftOut, transfer.wire.repairs == 0, transfer.wire.headBytes == 0 else { return nil }
            return beginAgain(handle, transfer, overFresh: true)
        default: return nil
        }
    }

    /// Whether a connection for a request is all that is wanted for now.
    func stopsConnected(_ transfer: EngineTransfer, over connection: SocketTable.Connection?) -> Bool {
        guard transfer.wire.connectsFirst else { return false }
        // Once, before the request is first sent: what libcurl sends again later may have been acted on.
        transfer.wire.connectsFirst = false
        guard transfer.wire.sends == 1, let connection, transfer.wire.origin?.isShared == true else { return false }
        transfer.wire.abort = .connectedFirst
        // Its settings are no answer that nobody asked for.
        sockets.learn(connection, .http2)
        return true
    }

    /// Another handle for one that libcurl has retried with: it counts retries over a handle's whole life.
    func renewed(_ handle: EasyHandle) -> EasyHandle {
        guard handle.hasRetried, let transfer = handle.transfer, let fresh = handle.domain.takeHandle() else {
            return handle
        }
        fresh.place = handle.place
        inUse[fresh.place] = fresh
        handle.domain.giveBack(handle)
        fresh.transfer = transfer
        transfer.wire.handle = fresh
        return fresh
    }

    /// Sends what has waited long enough.
    func endRests(_ now: UInt64) {
        let due = resting.filter { $0.until <= now }
        resting.removeAll { $0.until <= now }
        restsUntil = resting.map(\.until).min() ?? Monotonic.never
        for (handle, _) in due where handle.transfer != nil {
            handle.wire?.pointee.launchedAt = now
            handle.wire?.pointee.lastActivity = now
            add(handle)
        }
    }

    /// Whether libcurl's words, which cost some microseconds, are needed to know that GOAWAY leaves a request out.
    func mustListen(for transfer: EngineTransfer) -> Bool {
        guard !sharesPlainHTTP2, !transfer.plan.isIdempotent, let connection = transfer.wire.connection else {
            return false
        }
        switch sockets.version(of: connection) {
        case .http1: return false
        case .http2: return true
        case .unknown: return transfer.wire.origin?.isShared == true || limits.version == .http2PriorKnowledge
        }
    }
}
