// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A thing that happens to a connection at a chosen moment of a response, or right after it was accepted.
public enum SocketFault: Sendable {
    /// The server waits until the gate opens.
    ///
    /// It gives up when the client closes its side meanwhile, so a cancelled request does not keep a connection open.
    case stall(Gate)
    /// The server waits for a time.
    ///
    /// It gives up when the client closes its side meanwhile.
    case pause(Duration)
    /// Bytes that belong to no message go onto the connection: a broken chunk size, a second answer, garbage.
    case send([UInt8])
    /// The connection ends with RST.
    ///
    /// What was sent before has reached the client's kernel.
    case reset
    /// The connection ends with FIN, over TLS after close_notify.
    case close
    /// The connection ends with FIN and, over TLS, without close_notify: the truncation that RFC 8446 §6.1 warns of.
    ///
    /// Without TLS the same as `close`.
    case cut
}
