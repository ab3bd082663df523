// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import Foundation
import Glibc

@testable import Curlew
@testable import CurlewTerminal

/// A pseudoterminal for a program, whose output a test reads and on which it types.
final class PseudoTerminal: Sendable {
    /// The modes of a terminal, as an equatable value.
    struct Modes: Equatable {
        var flags: [UInt32]
        var characters: [UInt8]
    }

    private struct State {
        var output: [UInt8] = []
        var process: pid_t = 0
        var status: Int32?
    }

    let columns: UInt16
    let rows: UInt16
    private let master: CInt
    private let name: String
    private let state = Lock(State())
    private let signal = Signal()

    init(columns: UInt16 = 80, rows: UInt16 = 24) throws {
        (self.columns, self.rows) = (columns, rows)
        master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        // TIOCSPTLCK and TIOCGPTN do the same as posix_openpt(), unlockpt() and ptsname().
        var (lock, number): (CInt, CUnsignedInt) = (0, 0)
        guard master >= 0, ioctl(master, 0x4004_5431, &lock) == 0, ioctl(master, 0x8004_5430, &number) == 0 else {
            throw POSIXFailure(errno: errno)
        }
        name = "/dev/pts/\(number)"
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard ioctl(master, UInt(TIOCSWINSZ), &size) == 0 else { throw POSIXFailure(errno: errno) }
    }

    deinit {
        close(master)
        let (process, status) = state.withLock { ($0.process, $0.status) }
        if process > 0, status == nil { kill(process, SIGKILL) }
    }

    /// Returns the path of a program in the folder of the test program.
    static func path(of program: String) throws -> String {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(program).path
    }

    // MARK: The program

    /// Starts a program with this terminal as its controlling terminal, and reads its output.
    ///
    /// - Parameter output: The standard output of the program, if it is not the terminal.
    func start(_ path: String, _ arguments: [String], output: CInt? = nil) throws {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The first terminal that the leader of a session opens is its controlling one.
        posix_spawn_file_actions_addopen(&actions, 0, name, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, output ?? 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // POSIX_SPAWN_SETSID, SETSIGMASK and SETSIGDEF: the threads of tests block signals, and children inherit that.
        posix_spawnattr_setflags(&attributes, 0x80 | 0x08 | 0x04)

        let variables = ChildProgram.environment(adding: ["TERM": "xterm"]).map { "\($0.key)=\($0.value)" }
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        var environment = variables.map { strdup($0) } + [nil]
        defer { for word in words + environment { free(word) } }
        var process = pid_t()
        let failure = posix_spawn(&process, path, &actions, &attributes, &words, &environment)
        guard failure == 0 else { throw POSIXFailure(errno: failure) }
        state.withLock { ($0.process, $0.status) = (process, nil) }
        let started = process
        // A thread of its own, because reading blocks.
        Thread.detachNewThread { [self] in read(until: started) }
    }

    private func read(until process: pid_t) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            // Reading fails with EIO once the other end is closed.
            let count = Glibc.read(master, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { break }
            state.withLock { $0.output += buffer.prefix(count) }
            signal.send()
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        let (killer, code) = (status & 0x7F, (status >> 8) & 0xFF)
        state.withLock { $0.status = killer == 0 ? code : -killer }
        signal.send()
    }

    // MARK: Output

    /// The whole output of the program.
    var output: String { state.withLock { String(decoding: $0.output, as: UTF8.self) } }

    var screen: Screen { Screen(output, columns: Int(columns), height: Int(rows)) }

    /// Waits until the output contains a text; returns false if the program ends before.
    func wait(for text: String) async -> Bool {
        while true {
            let seen = signal.count
            if output.contains(text) { return true }
            if state.withLock({ $0.status }) != nil { return false }
            guard await signal.wait(after: seen) else { return false }
        }
    }

    /// Waits for the end of the program and returns its status, or the negated signal that killed it.
    func status() async -> Int32? {
        while true {
            let seen = signal.count
            if let status = state.withLock({ $0.status }) { return status }
            guard await signal.wait(after: seen) else { return nil }
        }
    }

    func type(_ keys: String) {
        let bytes = Array(keys.utf8)
        _ = Glibc.write(master, bytes, bytes.count)
    }

    func size(_ variable: (String) -> String?) -> TerminalDevice.Size {
        TerminalDevice.size(of: master, variable: variable)
    }

    func modes() throws -> Modes {
        var modes = termios()
        guard tcgetattr(master, &modes) == 0 else { throw POSIXFailure(errno: errno) }
        return Modes(
            flags: [modes.c_iflag, modes.c_oflag, modes.c_cflag, modes.c_lflag, modes.c_ispeed, modes.c_ospeed],
            characters: withUnsafeBytes(of: modes.c_cc) { Array($0) })
    }
}

/// A pipe with both ends close-on-exec.
final class TestPipe: Sendable {
    let reader: CInt
    let writer: CInt
    private let isReaderOpen = Lock(true)

    init(blocks: Bool = true) throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXFailure(errno: errno) }
        (reader, writer) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        if !blocks { for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) } }
    }

    deinit {
        closeReader()
        close(writer)
    }

    func closeReader() {
        let isOpen = isReaderOpen.withLock { isOpen in
            defer { isOpen = false }
            return isOpen
        }
        if isOpen { close(reader) }
    }

    /// Reads at least `count` bytes, or fewer at the end, on a thread of its own.
    func read(_ count: Int) async -> [UInt8] {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 4096)
                while bytes.count < count {
                    var waiting = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
                    guard poll(&waiting, 1, -1) >= 0 else { break }
                    let got = Glibc.read(reader, &buffer, buffer.count)
                    if got <= 0 { break }
                    bytes += buffer.prefix(got)
                }
                continuation.resume(returning: bytes)
            }
        }
    }
}
