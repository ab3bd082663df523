// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One stream of a connection with its script; stream 0 has the script of the connection.
///
/// Only the connection's thread uses it.
final class HTTP2Stream {
    let id: Int
    /// The number of the stream's request in ServerCore; nil for stream 0.
    let record: Int?

    var steps: ArraySlice<HTTP2Script.Step>
    /// The number of DATA bytes that the client accepts.
    var sendWindow: Int
    /// The number of DATA bytes that the client may send.
    var receiveWindow: Int
    /// The number of received bytes that no WINDOW_UPDATE has returned yet.
    var unreturnedWindow = 0
    var withholdsWindow = false

    var digest = SHA256Stream()
    var bodyLength = 0
    /// The value of `content-length`.
    var announcedLength: Int?
    /// Whether the client has ended its side.
    var isRequestComplete = false
    /// Whether the server has ended its side.
    var hasEndedResponse = false
    /// Whether one side has reset the stream.
    var isReset = false

    // The progress of the first step.
    var bodyOffset = 0
    var repetitions = 0
    var hasArrived = false
    var pauseEnd: ContinuousClock.Instant?

    init(_ id: Int, record: Int?, steps: [HTTP2Script.Step], sendWindow: Int, receiveWindow: Int) {
        self.id = id
        self.record = record
        self.steps = steps[...]
        self.sendWindow = sendWindow
        self.receiveWindow = receiveWindow
    }

    /// Whether the stream counts as open (RFC 9113 §5.1).
    var isOpen: Bool { !isReset && !(isRequestComplete && hasEndedResponse) }

    /// The gate at which the script waits.
    var gate: Gate? {
        if case .fault(.stall(let gate)) = steps.first { gate } else { nil }
    }

    func finishStep() {
        _ = steps.popFirst()
        bodyOffset = 0
        repetitions = 0
        hasArrived = false
        pauseEnd = nil
    }
}
