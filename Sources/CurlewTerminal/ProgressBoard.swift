// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The state of a display, and the text that brings a terminal to this state: pure, without a clock and a descriptor.
///
/// Bars are at the bottom, and the cursor is at the start of the line below them, even if the program is interrupted.
/// The lines of finished transfers move up and out of sight, and the board forgets them.
struct ProgressBoard: Sendable {
    /// The state and progress of a transfer at one moment.
    struct Sample: Sendable {
        var state: ProgressLine.State
        var progress: TransferProgress
    }

    private struct Row {
        var line: ProgressLine
        var meter = RateMeter()
        var reportedAt: UInt64
        var reported: ProgressLine?
    }

    let form: TerminalProgress.Form
    let style: ProgressLine.Style
    /// The nanoseconds between two lines of a transfer, for the form `lines`.
    let interval: UInt64
    private var rows: [UInt64: Row] = [:]
    private var order: [UInt64] = []
    private var lastKey: UInt64 = 0
    /// The lines to write: messages, and the lines of transfers in forms without bars.
    private var waiting: [String] = []
    /// Finished transfers whose last lines are fitted to the width of the terminal when they are written.
    private var ended: [ProgressLine] = []
    /// The columns of each bar on the terminal.
    private var drawn: [Int] = []
    private var lastBars = ""

    /// The time between two writes: together with the last write, which does not wait, fewer than ten in a second.
    static let period = Duration.milliseconds(125)

    init(form: TerminalProgress.Form, style: ProgressLine.Style, interval: Duration) {
        (self.form, self.style) = (form, style)
        self.interval = UInt64((min(max(interval.inSeconds, 0.1), 1e9) * 1e9).rounded())
    }

    /// Whether no transfer is shown and no text is left to write.
    var isIdle: Bool { rows.isEmpty && waiting.isEmpty && ended.isEmpty }

    // MARK: Events

    /// Adds a transfer to the display.
    ///
    /// - Returns: The key of the transfer.
    mutating func add(_ line: ProgressLine, now: UInt64) -> UInt64 {
        lastKey += 1
        rows[lastKey] = Row(line: line, reportedAt: now)
        order.append(lastKey)
        return lastKey
    }

    mutating func update(_ key: UInt64, _ sample: Sample, now: UInt64) {
        guard var row = rows[key] else { return }
        row.line.state = sample.state.isLast ? .running : sample.state
        row.line.progress = sample.progress
        let total = sample.progress.received + sample.progress.sent
        // The meter starts with the first bytes: bytes that a resumed transfer already has do not count for the rate.
        if total > 0 { row.meter.record(now: now, totalBytes: total) }
        row.line.progress.bytesPerSecond = row.meter.bytesPerSecond
        rows[key] = row
    }

    /// Records the end of a transfer.
    mutating func end(_ key: UInt64, _ progress: TransferProgress, _ error: NetworkError?) {
        guard var line = rows.removeValue(forKey: key)?.line else { return }
        order.removeAll { $0 == key }
        let rate = line.progress.bytesPerSecond
        line.progress = progress
        line.progress.bytesPerSecond = rate
        line.error = error?.kind == .cancelled ? nil : error
        line.state = error == nil ? .done : error?.kind == .cancelled ? .cancelled : .failed
        switch form {
        case .json: waiting.append(ProgressRecord(line).json)
        case .lines: waiting.append(line.plainText)
        case .automatic, .bars: ended.append(line)
        case .silent: break
        }
    }

    mutating func note(_ text: String) {
        if form == .json { return waiting.append(ProgressRecord(message: text).json) }
        waiting += text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).escapingControls }
    }

    /// Forgets all transfers; lines that are on the terminal stay there.
    mutating func reset() {
        (rows, order, waiting, ended, drawn, lastBars) = ([:], [], [], [], [], "")
    }

    // MARK: Output

    /// Returns the text to write now; nil when nothing has changed.
    mutating func text(now: UInt64, size: TerminalDevice.Size, isLast: Bool = false) -> String? {
        switch form {
        case .silent: waiting = []
        case .json: for key in order { appendRecord(key) }
        case .lines: for key in order { appendLine(key, now, isLast) }
        case .automatic, .bars: return bars(now, size)
        }
        defer { waiting = [] }
        return waiting.isEmpty ? nil : waiting.joined(separator: "\n") + "\n"
    }

    private mutating func appendRecord(_ key: UInt64) {
        guard let row = rows[key], row.reported?.isSame(as: row.line) != true else { return }
        rows[key]?.reported = row.line
        waiting.append(ProgressRecord(row.line).json)
    }

    private mutating func appendLine(_ key: UInt64, _ now: UInt64, _ isLast: Bool) {
        guard let row = rows[key], isLast || now &- row.reportedAt >= interval else { return }
        rows[key]?.reportedAt = now
        waiting.append(row.line.plainText)
    }

    private mutating func bars(_ now: UInt64, _ size: TerminalDevice.Size) -> String? {
        let live = order.compactMap { rows[$0]?.line }
        let labels = (live + ended).reduce(0) { max($0, $1.label.escapingControls.columns) }
        let tick = Int(now / 125_000_000 % 1_000_000)
        func text(_ line: ProgressLine, _ style: ProgressLine.Style) -> String {
            line.barText(columns: size.columns, labels: labels, tick: tick, style: style)
        }
        let stays = waiting + ended.map { text($0, style) }
        // The last row is for the cursor.
        let room = max(size.rows - 1, 0)
        var shown = room > 0 ? live : []
        var more: String?
        if shown.count > room {
            shown = Array(
                (live.filter { $0.state != .waiting } + live.filter { $0.state == .waiting }).prefix(room - 1))
            let rest = "… and \(live.count - shown.count) more"
            more = rest.shortened(toColumns: max(size.columns - 1, 1))
        }
        let lines = shown.map { text($0, style) } + (more.map { [$0] } ?? [])
        let bars = lines.joined(separator: "\n")
        guard !stays.isEmpty || bars != lastBars || isReflowed(size) else { return nil }
        (waiting, ended, lastBars) = ([], [], bars)

        let above = drawn.reduce(0) { $0 + rowCount($1, size) }
        var frame = above > 0 ? "\r\u{1B}[\(above)A" : "\r"
        // If lines are inserted or wrapped, all bars are erased at once, else line by line, which does not flicker.
        if !stays.isEmpty || isReflowed(size) { frame += "\u{1B}[J" }
        frame += stays.map { $0 + "\n" }.joined()
        frame += lines.map { $0 + "\u{1B}[K\n" }.joined()
        // Erase the rest of a longer list, and the input that the terminal has echoed.
        frame += "\u{1B}[J"
        drawn = shown.map { text($0, .plain).columns } + (more.map { [$0.columns] } ?? [])
        return frame
    }

    /// Returns the number of rows that a line takes now: terminals wrap existing lines when they become narrower.
    private func rowCount(_ columns: Int, _ size: TerminalDevice.Size) -> Int {
        max((columns + size.columns - 1) / max(size.columns, 1), 1)
    }

    private func isReflowed(_ size: TerminalDevice.Size) -> Bool { drawn.contains { $0 > size.columns } }
}
