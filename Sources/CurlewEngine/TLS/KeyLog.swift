// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A file that the secrets of TLS connections are written to, in the format of NSS that Wireshark reads.
///
/// Whoever has it can read everything that was said.
package final class KeyLog: Sendable {
    private let path: String

    package init(path: String) { self.path = path }

    /// Writes a line, away from the loop; a file that cannot be written stays as it is.
    func append(_ line: String) {
        _ = DiskThread.shared.run { [path] in
            let file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0o600)
            guard file >= 0 else { return }
            defer { close(file) }
            let bytes = Array((line + "\n").utf8)
            _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        }
    }
}
