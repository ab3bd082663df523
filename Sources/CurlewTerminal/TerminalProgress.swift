// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

/// A display of the progress of transfers: bars on a terminal, lines elsewhere, JSON for programs.
///
/// ```swift
/// let display = TerminalProgress()
/// let download = session.downloadTransfer("https://example.com/big.iso", to: .directory("."))
/// display.watch(download, as: "big.iso")
/// _ = try? await download.value
/// await display.finish()
/// ```
///
/// Bars fit the width of the terminal, also when it changes, and never wrap. The lines of finished transfers move up
/// and stay. The display writes at most ten times in a second. It does not change a mode of the terminal and does not
/// hide the cursor, which is at the start of the line below the bars, so that a program can be interrupted at any
/// moment. The display respects `NO_COLOR` (no-color.org) and `TERM=dumb`.
///
/// The display writes on its own thread, and stops when the reader of a pipe has closed it. A program that writes to
/// the same terminal must use ``note(_:)``.
public final class TerminalProgress: Sendable {
    /// The form of a display.
    public enum Form: String, Sendable, Hashable, CaseIterable {
        /// Bars on a terminal whose cursor can be moved, else lines.
        case automatic
        /// A bar for each transfer, redrawn in its place.
        case bars
        /// A line for each transfer at regular intervals, and one at its end.
        case lines
        /// A JSON object on a line for each change, at most ten in a second for each transfer, and one at its end.
        ///
        /// Its members are `id`, `label`, `state` ("waiting", "running", "paused", "done", "failed" or "cancelled"),
        /// `received`, `sent`, `bytesPerSecond` and `elapsed` in seconds, and `expectedToReceive`, `expectedToSend` and
        /// `error` (`code` and `message`) where they are known. A message is an object with `message` alone.
        case json
        /// No output.
        case silent
    }

    private struct Watched {
        let transfer: TransferHandle
        var watcher: Task<Void, Never>?
    }

    private struct State {
        var board: ProgressBoard
        var watched: [UInt64: Watched] = [:]
        var drawing: Task<Void, Never>?
        /// The time when the display last looked for text to write.
        var lastCheck: UInt64?
        var isFinishing = false
        /// Whether a write has failed, so that nothing more is written.
        var hasWriteFailed = false

        /// Forgets all transfers and messages.
        mutating func reset() {
            for one in watched.values { one.watcher?.cancel() }
            watched = [:]
            board.reset()
            isFinishing = false
        }
    }

    private let device: TerminalDevice
    private let state: Lock<State>

    /// Creates a display on a descriptor.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor to write to; standard error by default. It has to stay open until ``finish()``
    ///     has returned.
    ///   - form: The form of the display; bars on a terminal, else lines, by default.
    ///   - interval: The time between two lines of a transfer, for the form ``Form/lines``; 5 s by default.
    public convenience init(
        to descriptor: Int32 = 2, as form: Form = .automatic, every interval: Duration = .seconds(5)
    ) {
        self.init(
            on: .descriptor(descriptor), as: form, every: interval, isTerminal: TerminalDevice.isTerminal(descriptor),
            variable: { TerminalDevice.variable($0) })
    }

    init(
        on device: TerminalDevice, as form: Form, every interval: Duration = .seconds(5), isTerminal: Bool,
        variable: (String) -> String?
    ) {
        let isCapable = device.canMoveCursor(isTerminal: isTerminal, variable: variable)
        let style: ProgressLine.Style = isCapable && (variable("NO_COLOR") ?? "").isEmpty ? .coloured : .plain
        self.device = device
        let chosen = form == .automatic ? isCapable ? .bars : .lines : form
        state = Lock(State(board: ProgressBoard(form: chosen, style: style, interval: interval)))
    }

    // MARK: Transfers and messages

    /// Starts a transfer, as its `start()` does, and shows it until it ends.
    ///
    /// The display keeps the transfer only until it ends, and does not affect it otherwise: other code can await its
    /// value and read its body. A paused transfer that no other code holds ends as cancelled. As with every started
    /// transfer, the cancellation of a task that awaits the value does not cancel the transfer.
    ///
    /// - Parameters:
    ///   - transfer: The transfer to show.
    ///   - label: The name of the transfer on the display; by default its own label, else the last component of its
    ///     URL's path.
    public func watch<Output: Sendable>(_ transfer: Transfer<Output>, as label: String? = nil) {
        let handle = TransferHandle(transfer)
        let name = label ?? transfer.label ?? FileName.ofPath(of: transfer.request.url) ?? "transfer"
        let line = ProgressLine(id: handle.id, label: name)
        let now = device.now()
        let key = state.withLock { state -> UInt64? in
            guard !state.hasWriteFailed, state.board.form != .silent else { return nil }
            let key = state.board.add(line, now: now)
            state.watched[key] = Watched(transfer: handle)
            return key
        }
        let waitForEnd = key.map { _ in handle.observeEnd() }
        transfer.start()
        guard let key, let waitForEnd else { return }
        let watcher = Task.detached { [self] in
            _ = await waitForEnd { error in end(key, handle, error) }
        }
        state.withLock { $0.watched[key]?.watcher = watcher }
        draw()
    }

    private func end(_ key: UInt64, _ transfer: TransferHandle, _ error: NetworkError?) {
        let progress = transfer.progress
        state.withLock { state in
            state.watched[key] = nil
            state.board.end(key, progress, error)
        }
    }

    /// Writes a message, above the bars or as a line; as an object with the member `message` in JSON.
    ///
    /// Control characters except line ends are escaped.
    ///
    /// - Parameter text: The message, without the end of its last line.
    public func note(_ text: String) {
        let isShown = state.withLock { state in
            guard !state.hasWriteFailed, state.board.form != .silent else { return false }
            state.board.note(text)
            return true
        }
        if isShown { draw() }
    }

    /// Draws the last state, waits until it is written, and stops showing the transfers that still run.
    ///
    /// Transfers that ended before the call are shown with their ends. The display can be used again afterwards.
    public func finish() async {
        let watched = state.withLock { Array($0.watched.values) }
        for one in watched where one.transfer.state == .finished { await one.watcher?.value }
        let drawing = state.withLock { state in
            state.isFinishing = state.drawing != nil
            return state.drawing
        }
        // The cancellation ends the wait of the drawing task.
        drawing?.cancel()
        await drawing?.value
    }

    // MARK: Drawing

    /// Starts the task that draws until nothing is left to show, unless the task runs already.
    private func draw() {
        state.withLock { state in
            if state.drawing == nil { state.drawing = Task.detached { [self] in await drawAll() } }
        }
    }

    private func drawAll() async {
        repeat {
            let (lastCheck, isFinishing) = state.withLock { ($0.lastCheck, $0.isFinishing) }
            if let lastCheck, !isFinishing {
                let rest = ProgressBoard.period - .nanoseconds(Int64(clamping: device.now() &- lastCheck))
                if rest > .zero { await device.pause(rest) }
            }
            if let text = nextText(), await !device.write(text) { stopAfterWriteFailure() }
        } while continueDrawing()
    }

    /// Updates the board and returns the text to write; nil when nothing has changed.
    private func nextText() -> String? {
        let samples = state.withLock { $0.watched }.mapValues { ProgressBoard.Sample($0.transfer) }
        let (now, size) = (device.now(), device.size())
        return state.withLock { state in
            for (key, sample) in samples { state.board.update(key, sample, now: now) }
            state.lastCheck = now
            let text = state.board.text(now: now, size: size, isLast: state.isFinishing)
            if state.isFinishing { state.reset() }
            return text
        }
    }

    /// Whether this task has more to draw; if not, the method clears the task, or replaces it when updates are left.
    private func continueDrawing() -> Bool {
        state.withLock { state in
            if !state.board.isIdle, state.isFinishing || !Task.isCancelled { return true }
            // This task is cancelled and cannot wait, so another task draws the updates after `finish()`.
            let isOver = state.board.isIdle
            state.isFinishing = state.isFinishing && !isOver
            state.drawing = isOver ? nil : Task.detached { [self] in await drawAll() }
            return false
        }
    }

    private func stopAfterWriteFailure() {
        state.withLock { state in
            state.hasWriteFailed = true
            state.reset()
        }
    }
}

extension ProgressBoard.Sample {
    fileprivate init(_ transfer: TransferHandle) {
        let state: ProgressLine.State =
            switch transfer.state {
            case .idle, .queued: .waiting
            case .running: .running
            case .paused: .paused
            case .finished: .done
            }
        self.init(state: state, progress: transfer.progress)
    }
}
