// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Whether, when and how fast the server reads a request's body.
///
/// Chosen by route, since it begins before the answer is made.
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
        case afterAnswer
    }

    var extent: Extent
    var stalls: [(offset: Int, gate: Gate)] = []
    var pace: Pace?
    var sendsContinue = true

    private init(_ extent: Extent) {
        self.extent = extent
    }

    /// All of it, before the answer is made.
    ///
    /// The default everywhere.
    public static let whole = BodyReading(.whole)

    /// Nothing of it: the answer goes out at once, says `Connection: close`, and the connection closes.
    ///
    /// What the client still sends is thrown away until it closes too, so that the answer is not lost to a reset.
    public static let none = BodyReading(.none)

    /// The first bytes of it, then as `none`.
    /// - Parameter bytes: how many bytes to read before the answer is made.
    public static func prefix(_ bytes: Int) -> BodyReading {
        BodyReading(.prefix(bytes))
    }

    /// The answer goes out at once, then the body is read and the connection stays usable.
    public static let afterAnswer = BodyReading(.afterAnswer)

    /// Stops reading at a gate; may be used many times for many offsets.
    /// - Parameters:
    ///   - gate: where to wait. A request without a body waits too if `bytes` is 0.
    ///   - bytes: after how many bytes of the body; 0 is before the first, and before `100 Continue`.
    public func stalling(at gate: Gate, after bytes: Int = 0) -> BodyReading {
        var copy = self
        copy.stalls.append((bytes, gate))
        copy.stalls.sort { $0.offset < $1.offset }
        return copy
    }

    /// Reads a few bytes at a time.
    /// - Parameters:
    ///   - bytes: how many bytes to read before each pause.
    ///   - pause: how long to wait between.
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

/// So many bytes, then a pause.
struct Pace: Sendable {
    let bytes: Int
    let pause: Duration
}
