// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

@testable import Curlew
@testable import CurlewTerminal

@Suite(.timeLimit(.minutes(10)))
struct TerminalDeviceTests {
    @Test func longTextIsWrittenInParts() async throws {
        let pipe = try TestPipe(blocks: false)
        let text = String(repeating: "0123456789", count: 100_000)
        async let bytes = pipe.read(1_000_000)
        #expect(await TerminalDevice.descriptor(pipe.writer).write(text))
        #expect(await bytes == Array(text.utf8))
    }

    @Test func blockedDescriptorFailsAfterThePatience() throws {
        let pipe = try TestPipe(blocks: false)
        let text = String(repeating: "x", count: 1 << 20)
        #expect(!TerminalDevice.write(text, to: pipe.writer, patience: 0))
        #expect(!TerminalDevice.write("y", to: pipe.writer, patience: 0))
    }

    @Test func closedReaderFailsTheWriteWithoutASignal() async throws {
        let pipe = try TestPipe()
        #expect(await TerminalDevice.descriptor(pipe.writer).write("x"))
        pipe.closeReader()
        #expect(await !TerminalDevice.descriptor(pipe.writer).write("x"))
        #expect(await !TerminalDevice.descriptor(-1).write("x"))
    }

    @Test func terminalSizeOverridesEnvironment() throws {
        let terminal = try PseudoTerminal(columns: 123, rows: 45)
        let variables = ["COLUMNS": "99", "LINES": "11"]
        #expect(terminal.size { variables[$0] } == TerminalDevice.Size(columns: 123, rows: 45))
        let unsized = try PseudoTerminal(columns: 0, rows: 0)
        #expect(unsized.size { variables[$0] } == TerminalDevice.Size(columns: 99, rows: 11))
    }

    @Test(arguments: [nil, "", "-1", "0", "many", "99999999"])
    func environmentSetsTheSizeWithoutATerminal(value: String?) throws {
        let pipe = try TestPipe()
        #expect(TerminalDevice.size(of: pipe.writer) { _ in value } == TerminalDevice.Size(columns: 80, rows: 24))
        #expect(TerminalDevice.size(of: pipe.writer) { $0 == "COLUMNS" ? "99" : value }.columns == 99)
        #expect(!TerminalDevice.isTerminal(pipe.writer))
    }
}
