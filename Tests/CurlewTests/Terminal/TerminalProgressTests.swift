// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewTerminal

/// Displays of real transfers on a recording device, with a clock that only the display's pauses move.
@Suite(.timeLimit(.minutes(10)))
struct TerminalProgressTests {
    /// A device that records the written texts and their times.
    private final class Recorder: Sendable {
        struct State {
            var now: UInt64 = 1_000_000_000
            var texts: [(text: String, at: UInt64)] = []
            var pauses = 0
            var isClosed = false
        }

        let state = Lock(State())
        let signal = Signal()
        private let paused: @Sendable (Int) -> Void

        init(paused: @escaping @Sendable (Int) -> Void = { _ in }) { self.paused = paused }

        var device: TerminalDevice {
            TerminalDevice(
                size: { TerminalDevice.Size(columns: 60, rows: 20) },
                write: { [self] text in
                    let isClosed = state.withLock { state in
                        state.texts.append((text, state.now))
                        return state.isClosed
                    }
                    signal.send()
                    return !isClosed
                },
                now: { [self] in state.withLock { $0.now } },
                pause: { [self] time in
                    let pauses = state.withLock { state in
                        state.now += UInt64(time.inSeconds * 1e9)
                        state.pauses += 1
                        return state.pauses
                    }
                    paused(pauses)
                    await Task.yield()
                })
        }

        var text: String { state.withLock { $0.texts.map(\.text).joined() } }

        var screen: Screen { Screen(text, columns: 60, height: 20) }

        func wait(for text: String) async {
            while true {
                let seen = signal.count
                if self.text.contains(text) { return }
                guard await signal.wait(after: seen) else { return }
            }
        }
    }

    private static let terminal = ["TERM": "xterm"]
    private let session = Session()
    private let server: MockServer

    init() throws {
        server = try MockServer()
        server.on("GET", "/hello.txt", .text("hello"))
    }

    private func display(
        _ recorder: Recorder, _ form: TerminalProgress.Form = .bars, isTerminal: Bool = true,
        _ variables: [String: String] = terminal
    ) -> TerminalProgress {
        TerminalProgress(on: recorder.device, as: form, isTerminal: isTerminal) { variables[$0] }
    }

    private func transfer(_ path: String) -> Transfer<Data> { session.transfer(Request(server.url(path))) }

    // MARK: Output

    @Test func successAndFailureAreShown() async throws {
        let recorder = Recorder()
        let display = display(recorder)
        let (good, bad) = (transfer("/hello.txt"), session.transfer("http://127.0.0.1:1/closed"))
        display.watch(good)
        display.watch(bad, as: "the other one")
        #expect(try await good.value == Data("hello".utf8))
        _ = try? await bad.value
        await display.finish()
        let lines = recorder.screen.lines.sorted()
        #expect(lines.count == 2)
        #expect(lines[0].hasPrefix("hello.txt") && lines[0].contains("done  5 bytes  in 0:"))
        #expect(lines[1].hasPrefix("the other one  failed: "))
        #expect(recorder.screen.column == 0 && recorder.screen.unknown.isEmpty && recorder.screen.isColoured)
    }

    @Test func transferThatNeverStartsIsShown() async throws {
        let recorder = Recorder()
        let display = display(recorder, .lines)
        display.watch(session.transfer("no url"), as: "x")
        await display.finish()
        #expect(recorder.text.hasPrefix("x  failed: ") && recorder.text.split(separator: "\n").count == 1)
    }

    @Test func watchStartsTheTransfer() async throws {
        let recorder = Recorder()
        let display = display(recorder, .silent)
        display.watch(transfer("/hello.txt"))
        #expect(await server.nextRequest()?.path == "/hello.txt")
        await display.finish()
        #expect(recorder.text.isEmpty)
    }

    @Test func watchLeavesTheBodyToItsReader() async throws {
        let display = display(Recorder())
        let transfer = transfer("/hello.txt")
        display.watch(transfer)
        var bytes: [UInt8] = []
        for try await chunk in transfer.bytes { bytes += chunk }
        #expect(bytes == Array("hello".utf8))
        await display.finish()
    }

    @Test func pausedTransferIsShownAndCancelledWhenReleased() async throws {
        let recorder = Recorder()
        let display = display(recorder)
        let gate = Gate()
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(2)))
        do {
            let transfer = transfer("/held")
            display.watch(transfer)
            await gate.waitUntilReached()
            transfer.pause()
            await recorder.wait(for: "paused")
        }
        await recorder.wait(for: "cancelled")
        await display.finish()
        #expect(recorder.screen.lines.count == 1 && recorder.screen.lines[0].contains("cancelled"))
    }

    @Test func watchedTransferOutlivesCancelledTask() async throws {
        let recorder = Recorder()
        let display = display(recorder)
        let gate = Gate()
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = transfer("/held")
        display.watch(transfer)
        let task = Task { try await transfer.value }
        await gate.waitUntilReached()
        task.cancel()
        await #expect(throws: NetworkError.self) { try await task.value }
        // The display started the transfer, so it continues.
        gate.open()
        await recorder.wait(for: "done")
        #expect(try await transfer.value.count == 5)
        await display.finish()
    }

    @Test func finishLeavesRunningTransfersAndAllowsReuse() async throws {
        let recorder = Recorder()
        let display = display(recorder)
        let gate = Gate()
        server.on("GET", "/held", .text("hello").fault(.stall(gate), at: .body(2)))
        let transfer = transfer("/held")
        display.watch(transfer)
        await gate.waitUntilReached()
        await display.finish()
        let before = recorder.text
        #expect(recorder.screen.lines.count == 1 && recorder.screen.lines[0].hasPrefix("held"))
        gate.open()
        #expect(try await transfer.value.count == 5)
        #expect(recorder.text == before)
        // The display can be used again.
        display.note("one more")
        await display.finish()
        #expect(recorder.screen.lines.last == "one more" && recorder.screen.lines.count == 2)
    }

    // MARK: Forms

    @Test func dumbTerminalsAndPipesGetLines() async throws {
        for (isTerminal, variables) in [(true, ["TERM": "dumb"]), (true, [:]), (false, Self.terminal)] {
            let recorder = Recorder()
            let display = display(recorder, .automatic, isTerminal: isTerminal, variables)
            let transfer = transfer("/hello.txt")
            display.watch(transfer)
            _ = try await transfer.value
            await display.finish()
            #expect(recorder.text.hasPrefix("hello.txt  "))
            #expect(recorder.text.split(separator: "\n").last?.hasPrefix("hello.txt  done  5 bytes  in 0:") == true)
            #expect(!recorder.text.contains("\u{1B}") && !recorder.text.contains("\r"))
        }
    }

    @Test(arguments: [("1", false), ("", true), (nil, true)])
    func noColorVariableDisablesColours(value: String?, isColoured: Bool) async throws {
        let recorder = Recorder()
        var variables = Self.terminal
        variables["NO_COLOR"] = value
        let display = display(recorder, .automatic, variables)
        let transfer = transfer("/hello.txt")
        display.watch(transfer)
        _ = try await transfer.value
        await display.finish()
        #expect(recorder.screen.isColoured == isColoured && recorder.text.contains("\r"))
    }

    @Test func jsonFormWritesARecordPerEnd() async throws {
        let recorder = Recorder()
        let display = display(recorder, .json)
        let transfers = (0..<5).map { _ in transfer("/hello.txt") }
        for transfer in transfers { display.watch(transfer) }
        for transfer in transfers { _ = try await transfer.value }
        await display.finish()
        let records = try recorder.text.split(separator: "\n").map {
            try JSONDecoder().decode(ProgressRecord.self, from: Data($0.utf8))
        }
        let last = Dictionary(grouping: records, by: \.id).compactMapValues(\.last)
        #expect(Set(last.keys) == Set(transfers.map(\.id)))
        #expect(last.values.allSatisfy { $0.state == .done && $0.received == 5 })
        #expect(records.filter { $0.state == .done }.count == 5)
    }

    // MARK: Rate and lifetime

    @Test(arguments: [TerminalProgress.Form.bars, .json])
    func displayWritesAtMostTenTimesASecond(form: TerminalProgress.Form) async throws {
        let gate = Gate()
        // The body continues after 40 pauses of the display.
        let recorder = Recorder { if $0 == 40 { gate.open() } }
        let display = display(recorder, form)
        let whole = MockResponse.text("hello").chunked()
        server.on("GET", "/endless", whole.fault(.stall(gate), at: .body(2)))
        let transfers = (0..<3).map { _ in transfer("/endless").start() }
        // Wait until each transfer has received bytes, because bars move only then.
        for transfer in transfers { for await progress in transfer.progress where progress.received >= 2 { break } }
        for transfer in transfers { display.watch(transfer) }
        for transfer in transfers { _ = try await transfer.value }
        await display.finish()
        let times = recorder.state.withLock { $0.texts.map(\.at) }
        // Bars of unknown length move with every frame.
        #expect(form == .json || times.count > 20)
        for time in times {
            #expect(times.filter { $0 >= time && $0 < time + 1_000_000_000 }.count <= 10)
        }
    }

    @Test func closedReaderEndsTheDisplay() async throws {
        let recorder = Recorder()
        recorder.state.withLock { $0.isClosed = true }
        let display = display(recorder, .json)
        let transfer = transfer("/hello.txt")
        display.watch(transfer)
        #expect(try await transfer.value.count == 5)
        await display.finish()
        #expect(recorder.state.withLock { $0.texts.count } == 1)
        display.note("after the end")
        let late = self.transfer("/hello.txt")
        display.watch(late)
        #expect(try await late.value.count == 5)
        await display.finish()
        #expect(recorder.state.withLock { $0.texts.count } == 1)
    }

    private final class Held: Interceptor {
        let signal: Signal
        init(_ signal: Signal) { self.signal = signal }
        deinit { signal.send() }
        func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
            -> IncomingResponse
        {
            try await next(request)
        }
    }

    @Test func endedTransferIsReleased() async throws {
        let signal = Signal()
        let display = display(Recorder())
        do {
            var request = Request(server.url("/hello.txt"))
            request.interceptors = [Held(signal)]
            let transfer = session.transfer(request)
            display.watch(transfer)
            _ = try await transfer.value
        }
        // The display still exists and shows a further message.
        #expect(await signal.wait(after: 0))
        display.note("still here")
        await display.finish()
    }

    @Test func unreferencedDisplayIsReleased() async throws {
        let signal = Signal()
        do {
            let held = Held(signal)
            var device = Recorder().device
            device.size = {
                _ = held
                return TerminalDevice.Size()
            }
            let display = TerminalProgress(on: device, as: .bars, isTerminal: true) { Self.terminal[$0] }
            display.watch(transfer("/hello.txt"))
        }
        #expect(await signal.wait(after: 0))
    }
}
