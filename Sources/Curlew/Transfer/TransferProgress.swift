// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// How far a transfer is, at one moment.
///
/// ```swift
/// for await progress in transfer.progress {
///     bar.set(progress.fraction, rate: progress.bytesPerSecond, left: progress.timeRemaining)
/// }
/// ```
public struct TransferProgress: Sendable, Hashable {
    /// Bytes of the request's body written so far.
    public var sent: Int64
    /// Bytes of the response's body received so far, as on the wire (compressed if it is).
    public var received: Int64
    /// How long the request's body is; nil when it is not known.
    public var expectedToSend: Int64?
    /// How long the response's body is; nil when the server did not say.
    public var expectedToReceive: Int64?
    /// The rate in bytes per second, averaged over the last few seconds; both directions together.
    public var bytesPerSecond: Double
    /// Whether the transfer is complete and succeeded.
    public var isFinished: Bool
    /// The time since the transfer was started.
    public var elapsed: Duration

    /// Progress of its parts, each with the value it has at the start.
    public init(
        sent: Int64 = 0, received: Int64 = 0, expectedToSend: Int64? = nil, expectedToReceive: Int64? = nil,
        bytesPerSecond: Double = 0, isFinished: Bool = false, elapsed: Duration = .zero
    ) {
        self.sent = sent
        self.received = received
        self.expectedToSend = expectedToSend
        self.expectedToReceive = expectedToReceive
        self.bytesPerSecond = bytesPerSecond
        self.isFinished = isFinished
        self.elapsed = elapsed
    }

    /// How much is done, from 0 to 1; nil when the length is not known.
    ///
    /// An upload counts its own bytes until the first byte of the response's body arrives; from then on that body
    /// counts. 1 once the transfer is complete, even if its length was never known.
    public var fraction: Double? {
        if isFinished { return 1 }
        guard let (done, expected) = current else { return nil }
        return min(max(Double(done) / Double(expected), 0), 1)
    }

    /// How long the rest will take at the current rate; nil when the length or the rate is not known.
    public var timeRemaining: Duration? {
        if isFinished { return .zero }
        guard bytesPerSecond > 0, let (done, expected) = current else { return nil }
        return Duration(untrustedSeconds: Double(max(expected - done, 0)) / bytesPerSecond)
    }

    /// The direction that counts now, if its length is known and not zero.
    private var current: (done: Int64, expected: Int64)? {
        if received == 0, let expectedToSend, expectedToSend > 0 { return (sent, expectedToSend) }
        if let expectedToReceive, expectedToReceive > 0 { return (received, expectedToReceive) }
        return nil
    }
}
