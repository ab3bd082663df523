// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew
@testable import CurlewTerminal

@Suite struct ProgressLineTests {
    private static let half = TransferProgress(
        received: 512 << 20, expectedToReceive: 1 << 30, bytesPerSecond: 12.5 * 1_048_576, elapsed: .seconds(40))

    private func line(
        _ label: String = "big.iso", _ state: ProgressLine.State = .running, _ progress: TransferProgress = half,
        _ error: NetworkError? = nil
    ) -> ProgressLine {
        ProgressLine(id: 1, label: label, state: state, progress: progress, error: error)
    }

    private func bar(_ line: ProgressLine, _ columns: Int, tick: Int = 0) -> String {
        line.barText(columns: columns, labels: line.label.columns, tick: tick)
    }

    // MARK: Contents

    @Test(arguments: [
        (200, "big.iso  [====================>                   ]   50 %  512 MiB of 1 GiB    12.5 MiB/s  0:41 left"),
        (80, "big.iso  [=========>        ]   50 %  512 MiB of 1 GiB    12.5 MiB/s  0:41 left"),
        (60, "big.iso  [====>    ]   50 %  512 MiB of 1 GiB    12.5 MiB/s"),
        (45, "big.iso  [====>   ]   50 %  512 MiB of 1 GiB"), (40, "big.iso  [==========>          ]   50 %"),
        (30, "big.iso  [=====>     ]   50 %"), (18, "big.iso   50 %"), (9, "big.iso"), (5, "bi…o"), (2, "…"),
        (1, "…"),
    ])
    func barTextFitsTheWidth(columns: Int, text: String) {
        #expect(bar(line(), columns) == text)
    }

    @Test func commonUnitIsShownOnce() {
        let progress = TransferProgress(received: 3 << 19, expectedToReceive: 3 << 20)
        #expect(bar(line("a", .running, progress), 60).contains("  1.5 of 3 MiB"))
        #expect(line("a", .running, progress).plainText == "a  50 %  1.5 of 3 MiB")
    }

    @Test func unknownLengthShowsAMovingBlock() {
        let progress = TransferProgress(received: 2048, bytesPerSecond: 1024)
        let texts = (0..<6).map { bar(line("log", .running, progress), 44, tick: $0) }
        #expect(texts[0] == "log  [<=>       ]       2 KiB       1 KiB/s")
        #expect(texts[1] == "log  [ <=>      ]       2 KiB       1 KiB/s")
        #expect(Set(texts).count == 6)
        // The block moves to the other end and back; the bar has 10 cells.
        #expect(bar(line("log", .running, progress), 44, tick: 7).contains("[       <=>]"))
        #expect(bar(line("log", .running, progress), 44, tick: 14) == texts[0])
    }

    @Test func uploadShowsSentBytesUntilTheResponseArrives() {
        var progress = TransferProgress(sent: 300, expectedToSend: 400)
        #expect(line("up", .running, progress).plainText == "up  75 %  300 of 400 bytes")
        progress.received = 10
        progress.expectedToReceive = 20
        #expect(line("up", .running, progress).plainText == "up  50 %  10 of 20 bytes")
        progress.isFinished = true
        progress.elapsed = .milliseconds(61_500)
        #expect(line("up", .done, progress).plainText == "up  done  300 bytes  in 1:02")
    }

    @Test func stateTextsAreShown() {
        #expect(bar(line("a", .waiting), 80) == "a  waiting")
        #expect(bar(line("a", .paused), 40) == "a  [====>    ]   50 %  512 MiB of 1 GiB")
        #expect(bar(line("a", .paused), 80).hasSuffix("512 MiB of 1 GiB  paused"))
        #expect(bar(line("a", .done), 80) == "a  done  512 MiB  in 0:40")
        #expect(bar(line("a", .cancelled), 80) == "a  cancelled  512 MiB")
    }

    @Test func failedLineShowsTheError() {
        let error = NetworkError(.connectionLost, phase: .receiving, "The connection\u{1B}[2J broke off.")
        let failed = line("a", .failed, Self.half, error)
        #expect(bar(failed, 80) == "a  failed: The connection\\u{1B}[2J broke off.")
        #expect(bar(failed, 24) == "a  failed: Th…roke off.")
    }

    @Test func coloursTakeNoColumns() {
        for state in [ProgressLine.State.running, .paused, .waiting, .done, .cancelled, .failed] {
            for columns in [80, 40, 20] {
                let line = line("big.iso", state)
                let coloured = line.barText(columns: columns, labels: 7, style: .coloured)
                #expect(Screen(coloured).lines == [line.barText(columns: columns, labels: 7)])
            }
        }
        #expect(line().barText(columns: 80, labels: 7, style: .coloured).contains("\u{1B}[36m["))
    }

    // MARK: Widths

    @Test(arguments: [
        ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本語", 6), ("「あ」", 6), ("한국어", 6),
        ("\u{1112}\u{1161}\u{11AB}", 2),
        ("ﾊﾟ", 2), ("Ａ", 2), ("😀", 2), ("❤\u{FE0F}", 2), ("🇩🇪", 4), ("a\u{200B}b", 2), ("Ωж", 2), ("\u{AD}", 0),
    ])
    func textWidthsAreMeasuredInColumns(text: String, columns: Int) {
        #expect(text.columns == columns)
    }

    @Test func longLabelsLoseTheirMiddle() {
        #expect("chapter-one.mkv".shortened(toColumns: 9) == "chap….mkv")
        #expect("chapter".shortened(toColumns: 7) == "chapter")
        #expect("日本語日本語".shortened(toColumns: 6) == "日…語")
        #expect("日本語".shortened(toColumns: 2) == "…")
        #expect("日本語".shortened(toColumns: 0) == "")
    }

    @Test func randomLinesFitTheWidth() {
        var chance = SeededChance(7)
        let letters = ["a", "-", "é", "日", "😀", "e\u{301}", "\u{1B}[31m", "\n", "\u{202E}", "🇩🇪", "ｱ"]
        let states: [ProgressLine.State] = [.waiting, .running, .paused, .done, .failed, .cancelled]
        for round in 0..<3000 {
            let label = (0..<Int(chance.next() % 40)).map { _ in letters[Int(chance.next() % 11)] }.joined()
            let progress = TransferProgress(
                received: Int64(chance.next() >> (1 + chance.next() % 62)),
                expectedToReceive: chance.next() % 2 == 0 ? nil : Int64(chance.next() >> (1 + chance.next() % 62)),
                bytesPerSecond: [0, 1, 1e9, .infinity, .nan][Int(chance.next() % 5)], elapsed: .seconds(round))
            let error = NetworkError(.connectionLost, phase: .receiving, label + label)
            let line = line(label, states[round % 6], progress, error)
            let (columns, labels) = (Int(chance.next() % 130) + 1, Int(chance.next() % 30))
            let text = line.barText(columns: columns, labels: labels, tick: round)
            #expect(text.columns <= max(columns - 1, 1), "\(text)")
            #expect(!text.unicodeScalars.contains { String.needsEscape($0) })
        }
    }

    @Test(arguments: [(0, "0:00"), (0.1, "0:01"), (59.5, "1:00"), (3599, "59:59"), (3723, "1:02:03"), (-5, "0:00")])
    func clockTextsAreRoundedUp(seconds: Double, text: String) {
        #expect(Duration.seconds(seconds).clock == text)
    }
}
