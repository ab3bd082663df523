// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// One transfer as one line: label, bar, percentage, amount, rate and time left, as many of them as fit.
struct ProgressLine: Sendable {
    enum State: String, Sendable, Hashable, Codable {
        case waiting, running, paused, done, failed, cancelled

        var isLast: Bool { self == .done || self == .failed || self == .cancelled }
    }

    /// The escape sequences of a line.
    enum Style: Sendable, Hashable { case plain, coloured }

    /// The identifier of the transfer.
    var id: UInt64
    var label: String
    var state = State.waiting
    var progress = TransferProgress()
    /// The error of a failed transfer.
    var error: NetworkError?

    private static let bars = 6...40
    private static let gap = "  "

    /// Whether the state and the amounts are equal.
    func isSame(as other: ProgressLine) -> Bool {
        func amounts(_ of: TransferProgress) -> [Int64?] {
            [of.received, of.sent, of.expectedToReceive, of.expectedToSend]
        }
        return state == other.state && amounts(progress) == amounts(other.progress)
    }

    // MARK: Text

    /// The line without a bar, for logs, in its full length.
    var plainText: String { ([label.escapingControls] + facts(isPadded: false)).joined(separator: Self.gap) }

    /// Returns the line with a bar in fewer than `columns` columns: most terminals wrap a line that fills the last
    /// column.
    ///
    /// - Parameters:
    ///   - columns: The width of the terminal.
    ///   - labels: The columns of the longest label of all lines, for alignment.
    ///   - tick: The counter that moves the bar of a transfer of unknown length.
    ///   - style: The escape sequences of the line.
    func barText(columns: Int, labels: Int, tick: Int = 0, style: Style = .plain) -> String {
        let most = max(columns - 1, 1)
        let room = max(min(labels, most / 4), min(12, most))
        let label = label.escapingControls.shortened(toColumns: min(room, most)).padded(toColumns: min(room, labels))
        var facts = facts(isPadded: true)
        var rest = most - label.columns
        func width() -> Int { facts.reduce(0) { $0 + $1.columns + Self.gap.count } }
        let bar = hasBar ? Self.bars.lowerBound + 2 + Self.gap.count : 0
        while facts.count > 1, width() + bar > rest { facts.removeLast() }
        rest -= width()
        var text = label
        if hasBar, rest >= bar {
            let cells = min(rest - Self.gap.count - 2, Self.bars.upperBound)
            text += Self.gap + painted("[" + self.cells(cells, tick) + "]", style)
        }
        guard width() + label.columns > most else {
            let first = facts.first.map { Self.gap + (state.isLast ? painted($0, style) : $0) } ?? ""
            return (text + first + facts.dropFirst().map { Self.gap + $0 }.joined()).trimmingTrailingBlanks
        }
        // One fact is left and does not fit: the message of a failure is long, or the terminal has only a few columns.
        let fact = (facts.first ?? "").shortened(toColumns: most - label.columns - Self.gap.count)
        return (fact.isEmpty ? text : text + Self.gap + (state.isLast ? painted(fact, style) : fact))
            .trimmingTrailingBlanks
    }

    private var hasBar: Bool { state == .running || state == .paused }

    private func facts(isPadded: Bool) -> [String] {
        func padded(_ text: String, _ columns: Int) -> String {
            isPadded ? text.padded(toColumns: columns, atStart: true) : text
        }
        switch state {
        case .waiting: return ["waiting"]
        case .cancelled: return ["cancelled", "\(ByteCount(amount.done))"]
        case .failed: return ["failed: " + (error?.message ?? "").escapingControls]
        case .done:
            return ["done", "\(ByteCount(max(progress.received, progress.sent)))", "in \(progress.elapsed.clock)"]
        case .running, .paused: break
        }
        var facts: [String] = []
        if let fraction = progress.fraction { facts.append(padded("\(Int(fraction * 100)) %", 5)) }
        let (done, total) = (ByteCount(amount.done).description, amount.total.map { ByteCount($0).description })
        if let total {
            // "1.5 of 3 MiB": the unit is written once.
            let unit = total.drop { $0 != " " }
            let number = done.hasSuffix(unit) ? String(done.dropLast(unit.count)) : done
            facts.append(padded("\(number) of \(total)", 4 + 2 * total.count - unit.count))
        } else {
            facts.append(padded(done, 10))
        }
        if state == .paused { return facts + ["paused"] }
        let rate = ByteCount(Int64(clamping: progress.bytesPerSecond))
        if isPadded || rate.bytes > 0 { facts.append(padded("\(rate)/s", 12)) }
        if let left = progress.timeRemaining { facts.append(padded("\(left.clock) left", 9)) }
        return facts
    }

    /// The transferred bytes and the expected bytes of the body that is being sent or received.
    private var amount: (done: Int64, total: Int64?) {
        let isUpload = progress.received == 0 && (progress.sent > 0 || progress.expectedToSend ?? 0 > 0)
        let total = isUpload ? progress.expectedToSend : progress.expectedToReceive
        return (isUpload ? progress.sent : progress.received, total.flatMap { $0 > 0 ? $0 : nil })
    }

    private func cells(_ count: Int, _ tick: Int) -> String {
        guard let fraction = progress.fraction else {
            // The mark moves to and fro.
            let way = count - 3
            let place = tick % (2 * way)
            let start = place < way ? place : 2 * way - place
            return String(repeating: " ", count: start) + "<=>" + String(repeating: " ", count: way - start)
        }
        let full = Int(Double(count) * fraction)
        let head = full < count ? ">" : ""
        return String(repeating: "=", count: full) + head + String(repeating: " ", count: count - full - head.count)
    }

    private func painted(_ text: String, _ style: Style) -> String {
        guard style == .coloured else { return text }
        let colour =
            switch state {
            case .done: 32
            case .failed: 31
            case .waiting, .paused, .cancelled: 33
            case .running: 36
            }
        return "\u{1B}[\(colour)m\(text)\u{1B}[0m"
    }
}

extension String {
    fileprivate var trimmingTrailingBlanks: String {
        guard let last = lastIndex(where: { $0 != " " }) else { return "" }
        return String(self[...last])
    }
}

extension Int64 {
    /// Creates the nearest integer; 0 for NaN.
    fileprivate init(clamping number: Double) {
        self = number.isNaN ? 0 : Int64(exactly: number.rounded()) ?? (number < 0 ? .min : .max)
    }
}
