// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The progress of a transfer at one moment.
///
/// ```swift
/// for await progress in transfer.progress {
///     bar.set(progress.fraction, rate: progress.bytesPerSecond, left: progress.timeRemaining)
/// }
/// ```
public struct TransferProgress: Sendable, Hashable {
    /// Bytes of the request's body written so far.
    public var sent: Int64
    /// Bytes of the response's body received so far, before decoding (compressed if the body is).
    public var received: Int64
    /// The size of the request's body in bytes; nil when it is unknown.
    public var expectedToSend: Int64?
    /// The size of the response's body in bytes; nil when the server did not state it.
    public var expectedToReceive: Int64?
    /// The rate in bytes per second, averaged over the last few seconds; both directions together.
    public var bytesPerSecond: Double
    /// Whether the transfer has ended successfully.
    public var isFinished: Bool
    /// The time since the transfer was started.
    public var elapsed: Duration

    /// Creates a progress from its parts; each has by default the value at the start of a transfer.
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

    /// The completed fraction, from 0 to 1; nil when the size is unknown.
    ///
    /// An upload counts the bytes of the request's body until the first byte of the response's body arrives, and those
    /// of the response's body from then on. The fraction is 1 once the transfer is complete, even if the size was never
    /// known.
    public var fraction: Double? {
        if isFinished { return 1 }
        guard let (done, expected) = current else { return nil }
        return min(max(Double(done) / Double(expected), 0), 1)
    }

    /// The time for the rest at the current rate; nil when the size or the rate is unknown.
    public var timeRemaining: Duration? {
        if isFinished { return .zero }
        guard bytesPerSecond > 0, let (done, expected) = current else { return nil }
        return Duration(untrustedSeconds: Double(max(expected - done, 0)) / bytesPerSecond)
    }

    /// The counts of the current direction, if its size is known and not zero.
    private var current: (done: Int64, expected: Int64)? {
        if received == 0, let expectedToSend, expectedToSend > 0 { return (sent, expectedToSend) }
        if let expectedToReceive, expectedToReceive > 0 { return (received, expectedToReceive) }
        return nil
    }
}
