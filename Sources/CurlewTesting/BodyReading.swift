// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A setting that decides whether, when and how fast the server reads a request's body.
///
/// Each route has its own setting, because reading can begin before the route makes the response.
///
/// ```swift
/// server.on("POST", "/early", .status(413), reading: .none)
/// server.on("POST", "/slow", .status(200), reading: .whole.stalling(at: gate, after: 1000))
/// ```
public struct BodyReading: Sendable {
    enum Extent: Sendable {
        case whole
        case none
        case prefix(Int)
        case afterResponse
    }

    var extent: Extent
    var stalls: [(offset: Int, gate: Gate)] = []
    var pace: Pace?
    var sendsContinue = true

    private init(_ extent: Extent) {
        self.extent = extent
    }

    /// The server reads the whole body before it makes the response.
    ///
    /// This is the default everywhere.
    public static let whole = BodyReading(.whole)

    /// The server does not read the body: it sends the response at once with `Connection: close` and closes the
    /// connection.
    ///
    /// The server discards the remaining bytes of the request until the client closes its side, so that a reset does
    /// not destroy the response.
    public static let none = BodyReading(.none)

    /// Reads the first bytes of the body and then behaves like `none`.
    /// - Parameter bytes: The number of bytes to read before the server makes the response.
    public static func prefix(_ bytes: Int) -> BodyReading {
        BodyReading(.prefix(bytes))
    }

    /// The server sends the response at once and then reads the body; the connection stays usable.
    public static let afterResponse = BodyReading(.afterResponse)

    /// Stops reading at a gate; can be called several times for several offsets.
    /// - Parameters:
    ///   - gate: The gate at which the server waits. A request without a body also waits if `bytes` is 0.
    ///   - bytes: The number of body bytes to read first; 0 means before the first byte and before `100 Continue`.
    public func stalling(at gate: Gate, after bytes: Int = 0) -> BodyReading {
        var copy = self
        copy.stalls.append((bytes, gate))
        copy.stalls.sort { $0.offset < $1.offset }
        return copy
    }

    /// Reads a few bytes at a time.
    /// - Parameters:
    ///   - bytes: The number of bytes to read before each pause.
    ///   - pause: The length of each pause.
    public func slowly(bytes: Int, every pause: Duration) -> BodyReading {
        var copy = self
        copy.pace = Pace(bytes: max(1, bytes), pause: pause)
        return copy
    }

    /// Reads without sending `100 Continue` first, even to a client that waits for it (RFC 9110 §10.1.1).
    public func withoutContinue() -> BodyReading {
        var copy = self
        copy.sendsContinue = false
        return copy
    }
}

/// A number of bytes, followed by a pause.
struct Pace: Sendable {
    let bytes: Int
    let pause: Duration
}
