// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Glibc

/// The curl of the command line, for a second opinion.
enum Curl {
    static var isInstalled: Bool { system("command -v curl > /dev/null 2>&1") == 0 }

    /// Downloads a URL as Curlew does: without the user's settings, content coding or redirects.
    ///
    /// - Throws: `Difference` when curl cannot be run or fails.
    static func download(_ url: String, userAgent: String) throws -> Received {
        // Through the environment, where no shell looks for quotes.
        setenv("TOUR_URL", url, 1)
        setenv("TOUR_USER_AGENT", userAgent, 1)
        guard let pipe = popen(#"exec curl -q -sS -g -A "$TOUR_USER_AGENT" -- "$TOUR_URL""#, "r") else {
            throw Difference("curl cannot be started: errno \(errno)")
        }

        var received = Received()
        var digest = SHA256Stream()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        while case let count = fread(&buffer, 1, buffer.count, pipe), count > 0 {
            received.length += count
            digest.update(buffer[..<count])
        }
        received.sha256 = digest.hex

        let status = pclose(pipe)
        guard status == 0 else { throw Difference("curl failed with status \(status >> 8)") }
        return received
    }
}
