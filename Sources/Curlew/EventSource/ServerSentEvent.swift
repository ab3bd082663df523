// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// An event that a server sent over `text/event-stream` (HTML §9.2.6).
public struct ServerSentEvent: Sendable, Hashable {
    /// What kind of event it is: what `event` says, else "message".
    public var type: String
    /// The values of its `data` lines, joined by LF.
    public var data: String
    /// The last `id` that the stream has given up to here, with this event or before; empty when there was none.
    public var id: String
    /// What `retry` says among the event's lines: how long to wait before a reconnection.
    public var retry: Duration?

    /// An event.
    public init(type: String = "message", data: String, id: String = "", retry: Duration? = nil) {
        self.type = type
        self.data = data
        self.id = id
        self.retry = retry
    }

    /// What `data` holds, as JSON.
    ///
    /// - Parameters:
    ///   - value: What it holds.
    ///   - format: How the JSON is read.
    /// - Throws: `NetworkError` of kind `decodingFailed`, with the place and the start of `data`.
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
    /// The type and how much data there is; never the data, which may be secret.
    public var description: String { "\(type.shortened(to: 64).escapingControls) (\(data.utf8.count) bytes)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
