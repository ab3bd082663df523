// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// An event that a server sent over `text/event-stream` (HTML §9.2.6).
public struct ServerSentEvent: Sendable, Hashable {
    /// The event type: the value of `event`, or "message" without one.
    public var type: String
    /// The values of its `data` lines, joined by LF.
    public var data: String
    /// The last `id` that the stream has set up to and including this event; empty if no event has set one.
    public var id: String
    /// The reconnection time of the event's `retry` line; nil without a valid one.
    public var retry: Duration?

    /// Creates an event.
    public init(type: String = "message", data: String, id: String = "", retry: Duration? = nil) {
        self.type = type
        self.data = data
        self.id = id
        self.retry = retry
    }

    /// Decodes `data` as JSON.
    ///
    /// - Parameters:
    ///   - value: The type to decode.
    ///   - format: The JSON decoder.
    /// - Throws: `NetworkError` of kind `decodingFailed`, with the position and the start of `data`.
    public func decode<Value: Decodable>(
        _ value: Value.Type = Value.self, by format: JSON = JSON()
    ) throws(NetworkError) -> Value {
        do {
            return try format.decode(Value.self, from: Data(data.utf8), of: ResponseHead(status: .ok))
        } catch {
            throw NetworkError.decoding(
                error, as: Value.self, at: "Event “\(type.shortened(to: 64).escapingControls)”", bytes: Data(data.utf8))
        }
    }
}

extension ServerSentEvent: CustomStringConvertible, CustomReflectable {
    /// The type and the size of the data; never the data itself, which may be secret.
    public var description: String { "\(type.shortened(to: 64).escapingControls) (\(data.utf8.count) bytes)" }

    /// A mirror that shows only the description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
