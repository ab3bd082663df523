// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

@testable import Curlew
@testable import CurlewTerminal

/// The spinner of an activity monitor on a recording device.
@Suite(.timeLimit(.minutes(5)))
struct ActivitySpinnerTests {
    /// A device whose pauses end when the test steps, or when the task is cancelled.
    private final class Recorder: Sendable {
        private let state = Lock((texts: [String](), isClosed: false))
        private let written = Signal()
        private let stepped = Signal()
        private let pauses = Lock([Duration]())

        var device: TerminalDevice {
            TerminalDevice(
                size: { TerminalDevice.Size(columns: 12, rows: 5) },
                write: { [self] text in
                    let isClosed = state.withLock { state in
                        state.texts.append(text)
                        return state.isClosed
                    }
                    written.send()
                    return !isClosed
                },
                now: { 1 },
                pause: { [self] time in
                    let seen = stepped.count
                    pauses.withLock { $0.append(time) }
                    written.send()
                    _ = await stepped.wait(after: seen)
                })
        }

        var texts: [String] { state.withLock { $0.texts } }
        var screen: Screen { Screen(texts.joined(), columns: 12, height: 5) }

        func close() { state.withLock { $0.isClosed = true } }

        func step() { stepped.send() }

        /// Waits until the device has paused so many times, and returns the times of the pauses.
        @discardableResult
        func wait(forPauses count: Int) async -> [Duration] {
            await wait({ pauses.withLock { $0 } }, until: { $0.count >= count })
        }

        func wait(forTexts count: Int) async { _ = await wait({ texts }, until: { $0.count >= count }) }

        private func wait<Value>(_ value: () -> Value, until condition: (Value) -> Bool) async -> Value {
            while true {
                let seen = written.count
                let now = value()
                if condition(now) { return now }
                guard await written.wait(after: seen) else { return now }
            }
        }
    }

    private func action(
        _ recorder: Recorder, label: String = "loading", isTerminal: Bool = true, term: String? = "xterm"
    ) -> ActivityMonitor.Action {
        .spinner(on: recorder.device, label: label, isTerminal: isTerminal) { $0 == "TERM" ? term : nil }
    }

    @Test func framesFitTheTerminalAndLeaveTheCursorAtTheStart() {
        for (label, columns, line) in [
            ("loading", 80, "⠋ loading"), ("loading", 10, "⠋ loading"), ("loading", 9, "⠋ lo…ing"), ("loading", 2, "⠋"),
            ("", 80, "⠋"), ("a\u{1B}[2Jb\n", 80, "⠋ a\\u{1B}[2Jb\\n"),
        ] {
            let screen = Screen(ActivitySpinner.frame(0, label: label, columns: columns), columns: columns, height: 5)
            #expect(screen.column == 0 && screen.row == 0 && screen.wraps == 0 && screen.unknown.isEmpty)
            if columns != 9, columns != 2 { #expect(screen.lines == [line]) }
        }
        let frames = (0..<20).map { ActivitySpinner.frame($0, label: "x", columns: 80) }
        #expect(Set(frames).count == 10 && frames[3] == frames[13])
        #expect(ActivitySpinner.frame(1, label: "loading", columns: 0).count < 8)
    }

    @Test func spinnerMovesWhileActiveAndIsErased() async {
        let recorder = Recorder()
        let body = action(recorder).make()
        await body(false)
        #expect(recorder.texts.isEmpty)
        await body(true)
        await recorder.wait(forPauses: 1)
        #expect(recorder.screen.lines == ["⠋ loading"] && recorder.screen.column == 0)
        recorder.step()
        #expect(await recorder.wait(forPauses: 2) == [.milliseconds(125), .milliseconds(125)])
        #expect(recorder.screen.lines == ["⠙ loading"])
        await body(false)
        #expect(recorder.screen.lines.isEmpty && recorder.screen.column == 0 && recorder.screen.wraps == 0)
        #expect(!recorder.screen.isColoured && recorder.screen.unknown.isEmpty)
        await body(true)
        await recorder.wait(forPauses: 3)
        #expect(recorder.screen.lines == ["⠋ loading"])
        await body(false)
        #expect(recorder.screen.lines.isEmpty)
    }

    @Test(arguments: [(false, "xterm"), (true, "dumb"), (true, nil)] as [(Bool, String?)])
    func incapableTerminalGetsNothing(isTerminal: Bool, term: String?) async {
        let recorder = Recorder()
        let body = action(recorder, isTerminal: isTerminal, term: term).make()
        await body(true)
        await body(false)
        #expect(recorder.texts.isEmpty)
    }

    @Test func failedWriteStopsTheSpinner() async {
        let recorder = Recorder()
        recorder.close()
        let body = action(recorder).make()
        await body(true)
        await recorder.wait(forTexts: 1)
        await body(false)
        await body(true)
        await body(false)
        #expect(recorder.texts.count == 1)
    }

    @Test func cancellationErasesTheSpinner() async {
        let recorder = Recorder()
        let monitor = ActivityMonitor(activationDelay: .zero)
        _ = monitor.tracker.beginScope()
        let task = monitor.perform(action(recorder))
        await recorder.wait(forPauses: 1)
        task.cancel()
        await task.value
        #expect(recorder.screen.lines.isEmpty && recorder.texts.last == ActivitySpinner.erasure)
    }
}
