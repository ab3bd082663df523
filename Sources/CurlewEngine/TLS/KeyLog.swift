// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A file that the secrets of TLS connections are written to, in the format of NSS that Wireshark reads.
///
/// Whoever has it can read everything that was said, so only a regular file of this user is written that others can
/// neither read nor write.
package final class KeyLog: Sendable {
    /// How many lines wait for the disk, at most; the others are dropped.
    static let mostWaiting = 4096

    private struct State {
        /// Why the last line was not written; nil when it was.
        var refusal: String?
        var waiting = 0
    }

    private let path: String
    private let refused: @Sendable (String) -> Void
    private let state = Lock(State())

    /// - Parameters:
    ///   - path: The file; made with the first line if it is missing.
    ///   - refused: Told on any thread why lines are not written, once until that changes.
    package init(path: String, refused: @escaping @Sendable (String) -> Void = { _ in }) {
        self.path = path
        self.refused = refused
    }

    /// Writes a line, away from the loop; a file that cannot be written stays as it is.
    func append(_ line: String) {
        let hasRoom = state.withLock { state in
            state.waiting += 1
            return state.waiting <= Self.mostWaiting
        }
        guard hasRoom else { return note("its disk does not answer, and lines are dropped") }
        let isRun = DiskThread.keys.run(at: path) { [self] in note(KeyLog.write(line + "\n", to: path)) }
        if !isRun { note("there is no thread for it") }
    }

    /// Ends the wait of a line.
    private func note(_ reason: String?) {
        let isNews = state.withLock { state in
            state.waiting -= 1
            defer { state.refusal = reason }
            return state.refusal != reason
        }
        if isNews, let reason { refused(reason) }
    }

    /// Adds text to the file; gives why it cannot.
    private static func write(_ text: String, to path: String) -> String? {
        if DiskFile.hasNUL(path) { return "its path contains a NUL" }
        // A FIFO of that name must not hold up this thread.
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { return reason(errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { return String(cString: strerror(errno)) }
        if let objection = objection(mode: status.st_mode, owner: status.st_uid, user: geteuid()) { return objection }
        let bytes = Array(text.utf8)
        let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        if count < 0 { return String(cString: strerror(errno)) }
        return count == bytes.count ? nil : "only \(count) of \(bytes.count) bytes of a line were written"
    }

    /// Why the file cannot be opened.
    private static func reason(_ code: CInt) -> String {
        switch code {
        case ENXIO: "it is not a regular file"
        case ELOOP: "it is a symbolic link"
        default: String(cString: strerror(code))
        }
    }

    /// What speaks against a file that secrets are to be written to; nil for one that is this user's alone.
    static func objection(mode: UInt32, owner: UInt32, user: UInt32) -> String? {
        if mode & S_IFMT != S_IFREG { return "it is not a regular file" }
        if owner != user { return "it is a file of another user (uid \(owner))" }
        if mode & 0o066 != 0 { return "other users can read or write it (chmod 600 it)" }
        return nil
    }
}
