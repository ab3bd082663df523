// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import CurlewSupport

extension ActivityMonitor.Action {
    /// Shows a spinner, a moving character with a label, on a terminal while the monitor is active.
    ///
    /// The spinner moves every 125 ms, and is erased when the monitor is no longer active. Between two frames, the
    /// cursor is at the start of the line, so that later output overwrites the spinner of an interrupted program. The
    /// line never wraps, and has no colours. The action writes nothing to pipes and files, or to a terminal whose
    /// cursor cannot be moved (`TERM` is unset or "dumb"). After a failed write, it writes nothing more.
    ///
    /// - Parameters:
    ///   - descriptor: The descriptor to write to; standard error by default. Keep it open until the task of
    ///     `ActivityMonitor.perform(_:)` has ended.
    ///   - label: The text after the moving character; "loading" by default. Control characters are escaped.
    /// - Returns: The action.
    public static func spinner(to descriptor: Int32 = 2, label: String = "loading") -> ActivityMonitor.Action {
        spinner(
            on: .descriptor(descriptor), label: label, isTerminal: TerminalDevice.isTerminal(descriptor),
            variable: { TerminalDevice.variable($0) })
    }

    static func spinner(
        on device: TerminalDevice, label: String, isTerminal: Bool, variable: (String) -> String?
    ) -> ActivityMonitor.Action {
        guard device.canMoveCursor(isTerminal: isTerminal, variable: variable) else {
            return ActivityMonitor.Action { _ in }
        }
        return ActivityMonitor.Action(making: {
            let spinner = ActivitySpinner(on: device, label: label)
            return { isActive in if isActive { spinner.start() } else { await spinner.stop() } }
        })
    }
}

/// The spinner of one performance; its methods are called one after the other.
final class ActivitySpinner: Sendable {
    private struct State {
        var drawing: Task<Void, Never>?
        /// Whether a write has failed, so that nothing more is written.
        var hasWriteFailed = false
    }

    /// The time between two frames.
    static let period = Duration.milliseconds(125)
    private static let signs = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
    /// Erases the line and leaves the cursor at its start.
    static let erasure = "\r\u{1B}[K"

    private let device: TerminalDevice
    private let label: String
    private let state = Lock(State())

    init(on device: TerminalDevice, label: String) {
        self.device = device
        self.label = label
    }

    /// Returns the text of a frame, which is narrower than the terminal and leaves the cursor at the start of the line.
    static func frame(_ number: Int, label: String, columns: Int) -> String {
        let sign = signs[number % signs.count]
        let line = label.isEmpty ? sign : "\(sign) \(label.escapingControls)"
        return "\r\(line.shortened(toColumns: max(columns - 1, 0)))\u{1B}[K\r"
    }

    func start() {
        state.withLock { state in
            guard state.drawing == nil, !state.hasWriteFailed else { return }
            state.drawing = Task.detached { [self] in await draw() }
        }
    }

    /// Stops the drawing, waits for its last write and erases the line.
    func stop() async {
        let drawing = state.withLock { state in
            defer { state.drawing = nil }
            return state.drawing
        }
        guard let drawing else { return }
        // The cancellation ends the wait between two frames.
        drawing.cancel()
        await drawing.value
        if !state.withLock({ $0.hasWriteFailed }) { await write(Self.erasure) }
    }

    private func draw() async {
        var number = 0
        while await write(Self.frame(number, label: label, columns: device.size().columns)), !Task.isCancelled {
            number += 1
            await device.pause(Self.period)
            if Task.isCancelled { return }
        }
    }

    @discardableResult
    private func write(_ text: String) async -> Bool {
        if await device.write(text) { return true }
        state.withLock { $0.hasWriteFailed = true }
        return false
    }
}
