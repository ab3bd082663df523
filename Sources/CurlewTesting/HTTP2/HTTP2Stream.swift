// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// One stream of a connection with its script; stream 0 has the connection's own.
///
/// The connection's thread uses it.
final class HTTP2Stream {
    let id: Int
    /// Its request's number in ServerCore; nil for stream 0.
    let record: Int?

    var steps: ArraySlice<HTTP2Script.Step>
    /// How much DATA the client takes.
    var sendWindow: Int
    /// How much DATA the client may send.
    var receiveWindow: Int
    /// What has come and was not given back by WINDOW_UPDATE.
    var owedWindow = 0
    var withholdsWindow = false

    var digest = SHA256Stream()
    var bodyLength = 0
    /// What `content-length` says.
    var announcedLength: Int?
    /// Whether the client has ended its side.
    var isRequestComplete = false
    /// Whether we have ended ours.
    var isAnswerComplete = false
    /// Whether one of the two has reset it.
    var isReset = false

    // How far the first step has come.
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

    /// Whether it counts as open (RFC 9113 §5.1).
    var isOpen: Bool { !isReset && !(isRequestComplete && isAnswerComplete) }

    /// The gate at which its script stands.
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
