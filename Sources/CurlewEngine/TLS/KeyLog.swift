// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// A log file for the secrets of TLS connections, in the NSS format that Wireshark reads.
///
/// The secrets decrypt all recorded traffic, so the file must be a regular file of this user that other users can
/// neither read nor write.
package final class KeyLog: Sendable {
    /// The maximum number of lines that wait for the disk; further lines are dropped.
    static let maximumWaiting = 4096

    private struct State {
        /// The reason why the last line was not written; nil when it was written.
        var refusal: String?
        var waiting = 0
    }

    private let path: String
    private let refused: @Sendable (String) -> Void
    private let state = Lock(State())

    /// Creates a log.
    ///
    /// - Parameters:
    ///   - path: The path of the file, which is created with the first line if it is missing.
    ///   - refused: Called on any thread with the reason why lines are not written, once until the reason changes.
    package init(path: String, refused: @escaping @Sendable (String) -> Void = { _ in }) {
        self.path = path
        self.refused = refused
    }

    /// Writes a line on a disk thread instead of the loop; an unsuitable file is not changed.
    func append(_ line: String) {
        let hasCapacity = state.withLock { state in
            state.waiting += 1
            return state.waiting <= Self.maximumWaiting
        }
        guard hasCapacity else { return note("its disk does not respond, so lines are dropped") }
        let isRun = DiskThread.keys.run(at: path) { [self] in note(KeyLog.write(line + "\n", to: path)) }
        if !isRun { note("no thread can be started") }
    }

    /// Removes a line from the waiting count, and reports a new reason for a failure.
    private func note(_ reason: String?) {
        let isNews = state.withLock { state in
            state.waiting -= 1
            defer { state.refusal = reason }
            return state.refusal != reason
        }
        if isNews, let reason { refused(reason) }
    }

    /// Appends text to the file; returns the reason for a failure, nil on success.
    private static func write(_ text: String, to path: String) -> String? {
        if DiskFile.hasNUL(path) { return "its path contains a NUL" }
        // O_NONBLOCK: opening a FIFO must not block this thread.
        let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard file >= 0 else { return reason(errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { return String(cString: strerror(errno)) }
        if let rejectionReason = rejectionReason(mode: status.st_mode, owner: status.st_uid, user: geteuid()) {
            return rejectionReason
        }
        let bytes = Array(text.utf8)
        let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        if count < 0 { return String(cString: strerror(errno)) }
        return count == bytes.count ? nil : "only \(count) of \(bytes.count) bytes of a line were written"
    }

    /// Returns the reason why the file cannot be opened.
    private static func reason(_ code: CInt) -> String {
        switch code {
        case ENXIO: "it is not a regular file"
        case ELOOP: "it is a symbolic link"
        default: String(cString: strerror(code))
        }
    }

    /// Returns the reason why a file is unsuitable for secrets; nil for a regular file that only this user can access.
    static func rejectionReason(mode: UInt32, owner: UInt32, user: UInt32) -> String? {
        if mode & S_IFMT != S_IFREG { return "it is not a regular file" }
        if owner != user { return "it is a file of another user (uid \(owner))" }
        if mode & 0o066 != 0 { return "other users can read or write it (chmod 600 it)" }
        return nil
    }
}
