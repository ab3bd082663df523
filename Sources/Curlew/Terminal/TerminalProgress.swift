// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Shows how far transfers are: bars on a terminal, lines where there is none, JSON for programs.
///
/// ```swift
/// let display = TerminalProgress()
/// let download = session.transfer("https://example.com/big.iso", to: .directory("."))
/// display.watch(download, as: "big.iso")
/// _ = try? await download.value
/// await display.finish()
/// ```
///
/// Bars fit the width of the terminal, also when it changes, and never wrap; what has ended moves up and stays. Nothing is
/// written more often than ten times in a second. No mode of the terminal is changed, the cursor is not hidden, and stands
/// at the start of the line below the bars, so that a program can be interrupted at any moment. `NO_COLOR`
/// (no-color.org) and `TERM=dumb` are heeded.
///
/// It writes on a thread of its own, and when the reader of a pipe has gone it falls silent. A program that writes to the
/// same terminal itself does so by ``note(_:)``.
public final class TerminalProgress: Sendable {
    /// What is shown.
    public enum Form: String, Sendable, Hashable, CaseIterable {
        /// Bars on a terminal that has a cursor to be moved, else lines.
        case automatic
        /// A bar for each transfer, redrawn in its place.
        case bars
        /// A line for each transfer from time to time, and one at its end.
        case lines
        /// A JSON object on a line for each change, at most ten a second for each transfer, and one at its end.
        ///
        /// Its members are `id`, `label`, `state` ("waiting", "running", "paused", "done", "failed" or "cancelled"),
        /// `received`, `sent`, `bytesPerSecond` and `elapsed` in seconds, and `expectedToReceive`, `expectedToSend` and
        /// `error` (`code` and `message`) where they are known; or `message` alone.
        case json
        /// Nothing.
        case silent
    }

    private struct Watched {
        let run: TransferRun
        var watcher: Task<Void, Never>?
    }

    private struct State {
        var board: ProgressBoard
        var watched: [UInt64: Watched] = [:]
        var drawing: Task<Void, Never>?
        /// When something was written last, or would have been.
        var lookedAt: UInt64?
        var isFinishing = false
        /// Whether nothing gets through any more.
        var isBroken = false

        /// Forgets what is shown.
        mutating func leave() {
            for one in watched.values { one.watcher?.cancel() }
            watched = [:]
            board.leave()
            isFinishing = false
        }
    }

    private let device: TerminalDevice
    private let state: Lock<State>

    /// A display on a descriptor.
    ///
    /// - Parameters:
    ///   - descriptor: Where it is shown; standard error unless given. It has to stay open until ``finish()`` has returned.
    ///   - form: What is shown; bars on a terminal, else lines, unless given.
    ///   - interval: How often a line is written where there are lines; 5 s unless given.
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
        let isCapable = isTerminal && variable("TERM") ?? "dumb" != "dumb"
        let style: ProgressLine.Style = isCapable && (variable("NO_COLOR") ?? "").isEmpty ? .coloured : .plain
        self.device = device
        let chosen = form == .automatic ? isCapable ? .bars : .lines : form
        state = Lock(State(board: ProgressBoard(form: chosen, style: style, interval: interval)))
    }

    // MARK: What is shown

    /// Starts a transfer, as its `start()` does, and shows it until it ends.
    ///
    /// It is not kept any longer than that, and nothing else is done to it: its value can be awaited and its body read by
    /// others, one that is paused and that nobody else holds ends as cancelled, and, as with every transfer that was
    /// started, a task that awaits the value and is cancelled leaves it to run.
    ///
    /// - Parameters:
    ///   - transfer: What is shown.
    ///   - label: What it is called there; its own label, else the last part of its URL's path, unless given.
    public func watch<Output: Sendable>(_ transfer: Transfer<Output>, as label: String? = nil) {
        let run = transfer.token.run
        let name = label ?? transfer.label ?? FileName.ofPath(of: transfer.request.urlText) ?? "transfer"
        let line = ProgressLine(id: run.id, label: name)
        let now = device.now()
        let key = state.withLock { state -> UInt64? in
            guard !state.isBroken, state.board.form != .silent else { return nil }
            let key = state.board.add(line, now: now)
            state.watched[key] = Watched(run: run)
            return key
        }
        let events = key.map { _ in run.observe() }
        transfer.start()
        guard let key, let events else { return }
        let watcher = Task.detached { [self] in
            while let event = await events.next() {
                if case .finished(let error) = event.kind { return end(key, run, error) }
            }
        }
        state.withLock { $0.watched[key]?.watcher = watcher }
        draw()
    }

    private func end(_ key: UInt64, _ run: TransferRun, _ error: NetworkError?) {
        let progress = run.currentProgress
        state.withLock { state in
            state.watched[key] = nil
            state.board.end(key, progress, error)
        }
    }

    /// Writes a message, above the bars or as a line; as an object with the member `message` in JSON.
    ///
    /// Control characters are escaped, line ends excepted.
    ///
    /// - Parameter text: The message, without the end of its last line.
    public func note(_ text: String) {
        let isShown = state.withLock { state in
            guard !state.isBroken, state.board.form != .silent else { return false }
            state.board.note(text)
            return true
        }
        if isShown { draw() }
    }

    /// Draws the last state, and waits until it is written; what still runs is shown no more.
    ///
    /// Transfers that have ended before are shown with their ends. The display can be used again afterwards.
    public func finish() async {
        let watched = state.withLock { Array($0.watched.values) }
        for one in watched where one.run.standing == .finished { await one.watcher?.value }
        let drawing = state.withLock { state in
            state.isFinishing = state.drawing != nil
            return state.drawing
        }
        // It ends its wait.
        drawing?.cancel()
        await drawing?.value
    }

    // MARK: The task that draws

    /// Sees to it that a task draws, until nothing is left to be shown.
    private func draw() {
        state.withLock { state in
            if state.drawing == nil { state.drawing = Task.detached { [self] in await drawAll() } }
        }
    }

    private func drawAll() async {
        repeat {
            let (lookedAt, isFinishing) = state.withLock { ($0.lookedAt, $0.isFinishing) }
            if let lookedAt, !isFinishing {
                let rest = ProgressBoard.period - .nanoseconds(Int64(clamping: device.now() &- lookedAt))
                if rest > .zero { await device.pause(rest) }
            }
            if let text = look(), await !device.write(text) { giveUp() }
        } while goesOn()
    }

    /// What is to be written.
    private func look() -> String? {
        let samples = state.withLock { $0.watched }.mapValues { ProgressBoard.Sample($0.run) }
        let (now, size) = (device.now(), device.size())
        return state.withLock { state in
            for (key, sample) in samples { state.board.update(key, sample, now: now) }
            state.lookedAt = now
            let text = state.board.text(now: now, size: size, isLast: state.isFinishing)
            if state.isFinishing { state.leave() }
            return text
        }
    }

    /// Whether this task has more to draw.
    private func goesOn() -> Bool {
        state.withLock { state in
            if !state.board.isIdle, state.isFinishing || !Task.isCancelled { return true }
            // What came after the order to finish is for a task that can wait.
            let isOver = state.board.isIdle
            state.isFinishing = state.isFinishing && !isOver
            state.drawing = isOver ? nil : Task.detached { [self] in await drawAll() }
            return false
        }
    }

    private func giveUp() {
        state.withLock { state in
            state.isBroken = true
            state.leave()
        }
    }
}

extension ProgressBoard.Sample {
    fileprivate init(_ run: TransferRun) {
        state =
            switch run.standing {
            case .idle, .queued: .waiting
            case .running: .running
            case .paused: .paused
            case .finished: .done
            }
        progress = run.currentProgress
    }
}
