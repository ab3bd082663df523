// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// The progress of a transfer: on a terminal one line that is redrawn, otherwise a line each half second.
struct ProgressBar {
    private let isLive = isatty(STDOUT_FILENO) == 1
    private var isDrawn = false
    private var nextLine = Duration.zero

    mutating func show(_ progress: TransferProgress) {
        guard progress.sent + progress.received > 0 else { return }
        let line = "   " + text(progress)
        if isLive {
            // Return to the first column, and erase the rest of a longer line after the new text.
            say("\r\(line)\u{1B}[K", terminator: "")
            isDrawn = true
        } else if progress.isFinished || progress.elapsed >= nextLine {
            say(line)
            nextLine = progress.elapsed + .milliseconds(500)
        }
    }

    /// Ends the line of a live bar; call it even if the transfer failed.
    mutating func end() {
        if isDrawn { say("") }
        isDrawn = false
    }

    private func text(_ progress: TransferProgress) -> String {
        let isUpload = progress.sent > progress.received
        let moved = ByteCount(isUpload ? progress.sent : progress.received)
        let expected = isUpload ? progress.expectedToSend : progress.expectedToReceive

        var parts: [String] = []
        if let fraction = progress.fraction {
            parts.append("[\(bar(fraction))] \(Int(fraction * 100)) %")
        }
        parts.append(expected.map { "\(moved) of \(ByteCount($0))" } ?? "\(moved)")
        if progress.bytesPerSecond > 0 { parts.append("\(ByteCount(Int64(progress.bytesPerSecond)))/s") }
        if let left = progress.timeRemaining, !progress.isFinished {
            parts.append("\(clock(left)) left")
        }
        return parts.joined(separator: "  ")
    }

    private func bar(_ fraction: Double) -> String {
        let width = 30
        let done = Int(fraction * Double(width))
        return String(repeating: "#", count: done) + String(repeating: "-", count: width - done)
    }

    /// Returns a duration as minutes and seconds, rounded up, such as "2:05".
    private func clock(_ duration: Duration) -> String {
        let whole = Int64((duration / .seconds(1)).rounded(.up))
        let (minutes, seconds) = whole.quotientAndRemainder(dividingBy: 60)
        return "\(minutes):\(seconds < 10 ? "0" : "")\(seconds)"
    }
}
