// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A file that the secrets of TLS connections are written to, in the format of NSS that Wireshark reads.
///
/// Whoever has it can read everything that was said, so only a regular file of this user is written that others can
/// neither read nor write.
package final class KeyLog: Sendable {
    private let path: String
    private let refused: @Sendable (String) -> Void
    /// Why the last line was not written; nil when it was.
    private let refusal = Lock<String?>(nil)

    /// - Parameters:
    ///   - path: The file; made with the first line if it is missing.
    ///   - refused: Told on a thread of the disk why lines are not written, once until that changes.
    package init(path: String, refused: @escaping @Sendable (String) -> Void = { _ in }) {
        self.path = path
        self.refused = refused
    }

    /// Writes a line, away from the loop; a file that cannot be written stays as it is.
    func append(_ line: String) {
        _ = DiskThread.keys.run(at: path) { [self] in
            let reason = KeyLog.write(line + "\n", to: path)
            let isNews = refusal.withLock { refusal in
                defer { refusal = reason }
                return refusal != reason
            }
            if isNews, let reason { refused(reason) }
        }
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
        return count < 0 ? String(cString: strerror(errno)) : nil
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
