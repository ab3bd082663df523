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
}
