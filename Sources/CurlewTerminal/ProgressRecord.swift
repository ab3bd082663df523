// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// A record on one line for programs: the state of one transfer, or a message.
struct ProgressRecord: Sendable, Codable, Hashable {
    struct Failure: Sendable, Codable, Hashable {
        var code: String
        var message: String
    }

    var id: UInt64?
    var label: String?
    var state: ProgressLine.State?
    var received: Int64?
    var sent: Int64?
    var expectedToReceive: Int64?
    var expectedToSend: Int64?
    var bytesPerSecond: Int64?
    var elapsed: Double?
    var error: Failure?
    var message: String?

    init(message: String) { self.message = message }

    init(_ line: ProgressLine) {
        let progress = line.progress
        (id, label, state) = (line.id, line.label, line.state)
        (received, sent) = (progress.received, progress.sent)
        (expectedToReceive, expectedToSend) = (progress.expectedToReceive, progress.expectedToSend)
        bytesPerSecond = Int64(exactly: progress.bytesPerSecond.rounded())
        elapsed = (progress.elapsed.inSeconds * 1000).rounded() / 1000
        error = line.error.map { Failure(code: $0.code, message: $0.message) }
    }

    /// The record as JSON on one line, without the line end.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }
}
