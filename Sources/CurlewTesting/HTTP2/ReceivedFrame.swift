// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A frame as an `HTTP2Server` received it.
public struct ReceivedFrame: Sendable, Hashable {
    /// The number of the accepted connection that carried the frame; the server's first connection is 1.
    public let connection: Int
    /// The frame; a payload of more than 256 bytes is cut to 256 bytes, and `declaredLength` has the real length.
    public let frame: HTTP2Frame

    static let payloadLimit = 256

    init(_ frame: HTTP2Frame, connection: Int) {
        self.connection = connection
        var kept = frame
        if frame.payload.count > Self.payloadLimit {
            kept.payload = Array(frame.payload.prefix(Self.payloadLimit))
            kept.declaredLength = frame.payload.count
        }
        self.frame = kept
    }
}

extension ReceivedFrame: CustomStringConvertible {
    /// One line with connection and frame.
    public var description: String { "connection \(connection): \(frame)" }
}
