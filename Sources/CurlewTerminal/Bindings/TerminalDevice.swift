// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import Glibc
internal import CurlewSupport

/// The terminal that shows progress, and its clock; tests pass their own.
struct TerminalDevice: Sendable {
    struct Size: Sendable, Hashable {
        var columns = 80
        var rows = 24
    }

    /// Returns the current size of the terminal.
    var size: @Sendable () -> Size
    /// Writes all of a text; returns false when no further text can be written.
    var write: @Sendable (String) async -> Bool
    /// Returns the nanoseconds of a monotonic clock.
    var now: @Sendable () -> UInt64
    /// Waits for a time, or until the task is cancelled.
    var pause: @Sendable (Duration) async -> Void

    /// Creates a device for a descriptor of this process.
    static func descriptor(_ descriptor: Int32) -> TerminalDevice {
        TerminalDevice(
            size: { size(of: descriptor) },
            write: { text in
                await DiskThread.showing.value(at: "/dev/fd/\(descriptor)/") { write(text, to: descriptor) } ?? false
            },
            now: { Monotonic.now() },
            pause: { try? await ContinuousClock().wait(for: $0) })
    }

    static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

    /// Whether a terminal's cursor can be moved, according to the variable `TERM`.
    func canMoveCursor(isTerminal: Bool, variable: (String) -> String?) -> Bool {
        isTerminal && variable("TERM") ?? "dumb" != "dumb"
    }

    /// Returns a variable of the environment.
    static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    /// Returns the terminal's size from the kernel, otherwise from the environment, otherwise 80 columns and 24 rows.
    static func size(
        of descriptor: Int32, variable: (String) -> String? = { variable($0) }
    ) -> Size {
        var window = winsize()
        let isKnown = ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0
        func side(_ known: UInt16, _ name: String, _ usual: Int) -> Int {
            if isKnown, known > 0 { return Int(known) }
            return variable(name).flatMap { Int($0) }.flatMap { (1...10_000).contains($0) ? $0 : nil } ?? usual
        }
        return Size(columns: side(window.ws_col, "COLUMNS", 80), rows: side(window.ws_row, "LINES", 24))
    }

    /// The milliseconds that a non-blocking descriptor may accept no bytes.
    private static let patience: Int32 = 5000

    /// Writes all of a text, on a thread whose signals are blocked.
    ///
    /// On that thread a pipe without a reader is an error instead of `SIGPIPE`, and a background process can write to
    /// its terminal.
    static func write(_ text: String, to descriptor: Int32, patience: Int32 = patience) -> Bool {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                guard poll(&waiting, 1, patience) > 0 else { return false }
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
