// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A fault of a connection at a chosen point of a response, or right after the server accepted it.
public enum SocketFault: Sendable {
    /// The server waits until the gate opens.
    ///
    /// The wait ends early if the client closes its side, so a cancelled request does not keep a connection open.
    case stall(Gate)
    /// The server waits for the given time.
    ///
    /// The wait ends early if the client closes its side.
    case pause(Duration)
    /// The server sends bytes outside any message: a broken chunk size, a second response, garbage.
    case send([UInt8])
    /// The connection ends with RST.
    ///
    /// Before the RST, all bytes sent so far have reached the client's kernel.
    case reset
    /// The connection ends with FIN; over TLS, close_notify precedes it.
    case close
    /// The connection ends with FIN and, over TLS, without close_notify: the truncation that RFC 8446 §6.1 warns of.
    ///
    /// Without TLS it equals `close`.
    case cut
}
