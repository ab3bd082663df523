// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A frame as an `HTTP2Server` got it.
public struct ReceivedFrame: Sendable, Hashable {
    /// Which accepted connection it came on; the server's first is 1.
    public let connection: Int
    /// The frame; of payloads of more than 256 bytes the first 256, with the true length in `declaredLength`.
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
    /// One line: connection and frame.
    public var description: String { "connection \(connection): \(frame)" }
}
