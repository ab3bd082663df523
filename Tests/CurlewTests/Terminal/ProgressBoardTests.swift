// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewTerminal

@Suite struct ProgressBoardTests {
    /// A board, the screen on which it is drawn, and a clock.
    private struct Stage {
        var board: ProgressBoard
        var screen: Screen
        var now: UInt64 = 5_000_000_000
        var frames: [String] = []

        init(
            _ form: TerminalProgress.Form = .bars, columns: Int = 60, rows: Int = 10,
            style: ProgressLine.Style = .plain, interval: Duration = .seconds(5)
        ) {
            board = ProgressBoard(form: form, style: style, interval: interval)
            screen = Screen(columns: columns, height: rows)
        }

        mutating func add(_ labels: String...) -> [UInt64] {
            labels.map { board.add(ProgressLine(id: 70, label: $0), now: now) }
        }

        mutating func set(
            _ key: UInt64, _ received: Int64, of total: Int64? = 100, _ state: ProgressLine.State = .running
        ) {
            board.update(
                key, .init(state: state, progress: TransferProgress(received: received, expectedToReceive: total)),
                now: now)
        }

        mutating func end(_ key: UInt64, _ error: NetworkError? = nil) {
            board.end(key, TransferProgress(received: 100, isFinished: error == nil, elapsed: .seconds(2)), error)
        }

        /// Draws after an eighth of a second and returns the written text, or nil if the board wrote nothing.
        @discardableResult
        mutating func draw(isLast: Bool = false) -> String? {
            now += 125_000_000
            let size = TerminalDevice.Size(columns: screen.columns, rows: screen.height)
            let text = board.text(now: now, size: size, isLast: isLast)
            if let text {
                frames.append(text)
                screen.feed(text)
            }
            return text
        }
    }

    // MARK: Bars

    @Test func barsAreRedrawnInPlace() {
        var stage = Stage()
        let keys = stage.add("a.iso", "long.tar.gz")
        stage.draw()
        #expect(stage.screen.lines == ["a.iso        waiting", "long.tar.gz  waiting"])
        for (step, key) in [(0, keys[0]), (25, keys[1]), (50, keys[0])] {
            stage.set(key, Int64(step))
            stage.draw()
        }
        #expect(stage.screen.lines.count == 2)
        #expect(stage.screen.lines[0].hasPrefix("a.iso        [=========>         ]   50 %   50 of 100 bytes"))
        #expect(stage.screen.lines[1].hasPrefix("long.tar.gz  [====>              ]   25 %   25 of 100 bytes"))
        // The cursor is at the start of a new line, so that a prompt after an interrupt is in the right position.
        #expect((stage.screen.row, stage.screen.column) == (2, 0))
        #expect(stage.screen.wraps == 0 && stage.screen.unknown.isEmpty && stage.frames.count == 4)
    }

    @Test func unchangedBarsAreNotRedrawn() {
        var stage = Stage()
        let keys = stage.add("a")
        stage.set(keys[0], 50)
        #expect(stage.draw() != nil)
        stage.set(keys[0], 50)
        #expect(stage.draw() == nil)
        stage.set(keys[0], 51)
        #expect(stage.draw() != nil)
    }

    @Test func endedTransfersMoveAboveTheBars() {
        var stage = Stage()
        let keys = stage.add("a", "b", "c")
        stage.draw()
        stage.end(keys[1])
        stage.draw()
        #expect(stage.screen.lines == ["b  done  100 bytes  in 0:02", "a  waiting", "c  waiting"])
        stage.end(keys[2], NetworkError(.connectionLost, phase: .receiving, "It broke."))
        stage.end(keys[0], NetworkError(.cancelled, phase: .receiving, "It was cancelled."))
        #expect(!stage.board.isIdle)
        stage.draw()
        #expect(
            stage.screen.lines == ["b  done  100 bytes  in 0:02", "c  failed: It broke.", "a  cancelled  100 bytes"])
        #expect((stage.screen.row, stage.screen.column) == (3, 0))
        #expect(stage.board.isIdle)
    }

    @Test func messagesAreShownAboveTheBars() {
        var stage = Stage(columns: 20)
        let keys = stage.add("a")
        stage.draw()
        stage.board.note("first\nsecond\u{1B}[2J")
        stage.board.note("a message of more than one line")
        stage.draw()
        stage.set(keys[0], 1, of: nil, .paused)
        stage.draw()
        let lines = ["first", "second\\u{1B}[2J", "a message of more th", "an one line", "a     1 byte  paused"]
        #expect(stage.screen.lines.prefix(4) == lines.prefix(4))
        #expect(stage.screen.lines.count == 5 && stage.screen.unknown.isEmpty)
        #expect((stage.screen.row, stage.screen.column) == (5, 0))
    }

    @Test func terminalEchoIsOverwritten() {
        var stage = Stage()
        let keys = stage.add("a")
        stage.draw()
        stage.screen.feed("^C")
        stage.end(keys[0], NetworkError(.cancelled, phase: .receiving, "It was cancelled."))
        stage.draw()
        #expect(stage.screen.lines == ["a  cancelled  100 bytes"])
    }

    @Test func barsBeyondTheScreenAreSummarized() {
        var stage = Stage(rows: 8)
        let keys = (0..<30).flatMap { stage.add("n\($0)") }
        stage.set(keys[20], 10)
        for _ in 0..<3 {
            stage.draw()
            stage.set(keys[20], 20)
        }
        #expect(stage.screen.history == [])
        #expect(stage.screen.lines.count == 7 && stage.screen.lines.last == "… and 24 more")
        #expect(stage.screen.lines.first?.hasPrefix("n20") == true)
        #expect((stage.screen.row, stage.screen.column) == (7, 0))
        for key in keys.shuffled() {
            stage.end(key)
            stage.draw()
        }
        // Each transfer ends once, and no other line is left.
        let ends = stage.screen.everything
        #expect(Set(ends.map { $0.prefix { $0 != " " } }) == Set((0..<30).map { "n\($0)" }))
        #expect(ends.count == 30 && ends.allSatisfy { $0.hasSuffix("done  100 bytes  in 0:02") })
    }

    @Test(arguments: [1, 2, 3])
    func terminalsWithFewRowsShowACount(rows: Int) {
        var stage = Stage(rows: rows)
        let keys = (0..<3).flatMap { stage.add("n\($0)") }
        for step in 0..<3 {
            stage.set(keys[0], Int64(step))
            stage.draw()
        }
        // The last row is reserved for the cursor, so a terminal with one row shows no lines.
        #expect(stage.screen.lines.last == [2: "… and 3 more", 3: "… and 2 more"][rows])
        #expect(stage.screen.lines.count == rows - 1 && stage.screen.history == [])
    }

    @Test func resizeLeavesNoRemains() {
        var stage = Stage(columns: 70, rows: 20)
        let keys = stage.add("a.iso", "b.iso")
        for key in keys { stage.set(key, 50) }
        stage.draw()
        stage.screen.resize(columns: 30)
        #expect(stage.screen.lines.count > 2)
        stage.draw()
        #expect(stage.screen.lines.count == 2 && stage.screen.wraps == 0)
        #expect(stage.screen.lines.allSatisfy { $0.contains("50 %") })
        stage.screen.resize(columns: 100)
        stage.set(keys[0], 60)
        stage.draw()
        #expect(stage.screen.lines.count == 2 && stage.screen.lines[0].contains("60 of 100 bytes"))
    }

    @Test func randomChangesKeepTheScreenConsistent() {
        var chance = SeededChance(3)
        for _ in 0..<40 {
            var stage = Stage(
                columns: Int(chance.next() % 80) + 12, rows: Int(chance.next() % 12) + 2, style: .coloured)
            var (live, ended): ([UInt64], Int) = ([], 0)
            for step in 0..<60 {
                switch chance.next() % 4 {
                case 0: live += stage.add(["日本語.pdf", "a", "some-long-name.tar.gz", "😀"][step % 4])
                case 1 where !live.isEmpty:
                    stage.end(live.remove(at: Int(chance.next() % UInt64(live.count))))
                    ended += 1
                default: if let key = live.randomElement(using: &chance) { stage.set(key, Int64(step)) }
                }
                if chance.next() % 2 == 0 { stage.draw() }
                #expect(stage.screen.column == 0)
            }
            stage.draw()
            let bars = min(live.count, stage.screen.height - 1)
            #expect(stage.screen.everything.count == ended + bars && stage.screen.wraps == 0)
            #expect(stage.screen.unknown.isEmpty)
        }
    }

    @Test func rateExcludesBytesReceivedBefore() {
        var stage = Stage(.json)
        let keys = stage.add("a")
        stage.set(keys[0], 0)
        stage.now += 1_000_000_000
        stage.set(keys[0], 1_000_000)
        stage.now += 1_000_000_000
        stage.set(keys[0], 1_001_000)
        #expect(stage.draw()?.contains("\"bytesPerSecond\":1000,") == true)
    }

    // MARK: Lines

    @Test func linesAreWrittenAtIntervalsAndEnds() throws {
        var stage = Stage(.lines, interval: .seconds(1))
        let keys = stage.add("a", "b")
        for step in 0..<20 {
            stage.set(keys[0], Int64(step))
            stage.draw()
            if step == 11 { stage.end(keys[1]) }
        }
        try #require(stage.frames.count == 3)
        #expect(stage.frames[0].hasPrefix("a  7 %  7 of 100 bytes") && stage.frames[0].hasSuffix("\nb  waiting\n"))
        #expect(stage.frames[1] == "b  done  100 bytes  in 0:02\n")
        #expect(stage.draw(isLast: true)?.hasPrefix("a  19 %") == true)
        #expect(!stage.frames.joined().contains("\u{1B}"))
    }

    @Test(arguments: [Duration.seconds(10_000_000_000), .seconds(Int64.max), .zero, .seconds(-1)])
    func extremeIntervalsAreAccepted(_ interval: Duration) {
        var stage = Stage(.lines, interval: interval)
        _ = stage.add("a")
    }

    // MARK: JSON

    private func records(_ text: String) throws -> [ProgressRecord] {
        #expect(text.last == "\n")
        return try text.split(separator: "\n").map {
            try JSONDecoder().decode(ProgressRecord.self, from: Data($0.utf8))
        }
    }

    @Test func jsonRecordsAreDecodable() throws {
        var stage = Stage(.json)
        let keys = stage.add("a \"quoted\"\nname \u{1B}[0m日本")
        stage.board.update(
            keys[0],
            .init(
                state: .running, progress: TransferProgress(received: 5, expectedToReceive: 9, elapsed: .seconds(1.5))),
            now: stage.now)
        stage.draw()
        stage.board.note("two\nlines")
        stage.end(keys[0], NetworkError(.connectionLost, phase: .receiving, "It broke."))
        stage.draw()
        #expect(stage.frames[0].filter { $0 == "\n" }.count == 1)
        let records = try records(stage.frames.joined())
        try #require(records.count == 3)
        #expect(records[0].label == "a \"quoted\"\nname \u{1B}[0m日本" && records[0].id == 70)
        #expect(records[0].state == .running && records[0].received == 5 && records[0].expectedToReceive == 9)
        #expect(records[0].elapsed == 1.5 && records[0].error == nil && records[0].message == nil)
        #expect(records[1] == ProgressRecord(message: "two\nlines"))
        #expect(records[2].state == .failed)
        #expect(
            records[2].error == ProgressRecord.Failure(code: "curlew.connection_lost.receiving", message: "It broke."))
        #expect(!stage.frames.joined().contains("\u{1B}"))
    }

    @Test func jsonRecordIsWrittenForEachChange() throws {
        var stage = Stage(.json)
        let keys = stage.add("a", "b")
        stage.draw()
        stage.set(keys[0], 10)
        stage.draw()
        stage.set(keys[0], 10)
        #expect(stage.draw() == nil)
        stage.set(keys[1], 0, of: 100, .paused)
        stage.draw()
        stage.end(keys[1])
        stage.draw()
        let records = try records(stage.frames.joined())
        #expect(records.map(\.label) == ["a", "b", "a", "b", "b"])
        #expect(records.map(\.state) == [.waiting, .waiting, .running, .paused, .done])
    }
}
