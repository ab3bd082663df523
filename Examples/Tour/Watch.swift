// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials

/// The parts of a response that `watch` keeps; it never keeps the whole body.
struct Received {
    var status: Status?
    var length = 0
    var sha256 = ""
    /// The start of the body, as text.
    var text = ""
}

/// Runs a transfer to its end, shows its progress on the terminal and computes the digest of its bytes.
///
/// - Throws: `NetworkError` if the transfer fails.
func watch(_ transfer: Transfer<Data>) async throws -> Received {
    var received = Received()
    var digest = SHA256Stream()
    var bar = ProgressBar()
    defer { bar.end() }

    for try await element in transfer.stream {
        switch element {
        case .head(let head): received.status = head.status
        case .progress(let progress): bar.show(progress)
        case .bytes(let chunk):
            if received.length == 0 { received.text = String(decoding: chunk.prefix(100), as: UTF8.self) }
            received.length += chunk.count
            digest.update(chunk)
        default: break
        }
    }
    received.sha256 = digest.hex
    return received
}
