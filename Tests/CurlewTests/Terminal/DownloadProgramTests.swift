// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewTerminal

/// The example program `Download` on a terminal.
@Suite(.timeLimit(.minutes(10)))
struct DownloadProgramTests {
    private static let held = 700_000

    private let folder: Folder
    private let server: MockServer
    private let gate = Gate()

    init() throws {
        folder = try Folder()
        let gate = gate
        // The first response stalls after more than half of the file; the rest arrives at once.
        server = try MockServer { request in
            let answer = RangeResource(.usual).response(to: request)
            return request.field("Range") == nil ? answer.fault(.stall(gate), at: .body(Self.held)) : answer
        }
    }

    private func arguments(_ more: String...) -> [String] {
        ["--dir", folder.path, "--sha256", PatternBody.usual.sha256] + more + [server.url("/big.bin")]
    }

    private func start(_ terminal: PseudoTerminal, _ arguments: [String]) throws {
        try terminal.start(PseudoTerminal.path(of: "Download"), arguments)
    }

    @Test func interruptedDownloadRestoresTheTerminalAndResumes() async throws {
        let terminal = try PseudoTerminal()
        let modes = try terminal.modes()
        try start(terminal, arguments())
        #expect(await terminal.wait(for: "  56 %"))
        // The modes are unchanged while the program runs.
        #expect(try terminal.modes() == modes)
        terminal.type("\u{3}")
        #expect(await terminal.status() == 130)

        let screen = terminal.screen
        try #require(screen.lines.count == 3, "\(screen.lines)")
        #expect(screen.lines[0] == "big.bin  cancelled  683.6 KiB")
        #expect(screen.lines[1] == "Interrupted.")
        #expect(screen.lines[2] == "683.6 KiB of 1 file are kept; run the same command again to get the rest.")
        #expect((screen.row, screen.column) == (3, 0))
        #expect(screen.unknown.isEmpty && screen.wraps == 0 && screen.isColoured)
        #expect(!terminal.output.contains("\u{1B}[?"))
        #expect(try terminal.modes() == modes)
        let names = folder.names
        #expect(
            names.count == 2 && names.first?.hasSuffix(".part") == true && names.last?.hasSuffix(".part.json") == true)
        #expect(names.first.flatMap { folder.bytes($0) } == Array(PatternBody.usual.bytes.prefix(Self.held)))

        let again = try PseudoTerminal()
        try start(again, arguments())
        #expect(await again.status() == 0)
        #expect(again.screen.lines.count == 1 && again.screen.lines[0].hasPrefix("big.bin  done  1.2 MiB  in 0:"))
        #expect(folder.names == ["big.bin"] && folder.bytes("big.bin") == PatternBody.usual.bytes)
        #expect(server.requests.map { $0.field("Range") } == [nil, "bytes=\(Self.held)-"])
        #expect(server.requests.last?.field("If-Range") == "\"1\"")
    }

    @Test func closedJSONReaderDoesNotEndTheDownload() async throws {
        gate.open()
        let pipe = try TestPipe()
        pipe.closeReader()
        let terminal = try PseudoTerminal()
        try terminal.start(PseudoTerminal.path(of: "Download"), arguments("--json"), output: pipe.writer)
        #expect(await terminal.status() == 0)
        #expect(terminal.output.isEmpty && folder.bytes("big.bin") == PatternBody.usual.bytes)
    }

    @Test func jsonOptionWritesObjectsOnATerminal() async throws {
        gate.open()
        let terminal = try PseudoTerminal()
        try start(terminal, arguments("--json"))
        #expect(await terminal.status() == 0)
        let records = try terminal.output.split(whereSeparator: \.isNewline).map {
            try JSONDecoder().decode(ProgressRecord.self, from: Data($0.utf8))
        }
        #expect(records.last?.state == .done && records.last?.received == Int64(PatternBody.usual.length))
    }

    @Test func quietOptionPrintsOnlyErrors() async throws {
        gate.open()
        let terminal = try PseudoTerminal()
        try start(terminal, arguments("--quiet"))
        #expect(await terminal.status() == 0)
        #expect(terminal.output.isEmpty)
        let again = try PseudoTerminal()
        try start(again, arguments("--quiet"))
        #expect(await again.status() != 0)
        #expect(again.output.hasPrefix("error: "))
    }

    @Test(arguments: ["--help", "--what", "--at-most 0", "--sha256"])
    func invalidCommandLinesPrintUsage(arguments: String) async throws {
        let terminal = try PseudoTerminal()
        try start(terminal, arguments.split(separator: " ").map(String.init))
        #expect(await terminal.status() == (arguments == "--help" ? 0 : 64))
        #expect(terminal.output.contains("usage: Download"))
    }

    /// Checks that a comparison of modes detects a changed terminal.
    @Test func changedTerminalModesAreDetected() async throws {
        let terminal = try PseudoTerminal()
        let modes = try terminal.modes()
        try terminal.start("/bin/stty", ["-echo"])
        #expect(await terminal.status() == 0)
        #expect(try terminal.modes() != modes)
    }
}
