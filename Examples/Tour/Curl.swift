// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Glibc

/// The curl command, for comparison.
enum Curl {
    static var isInstalled: Bool { system("command -v curl > /dev/null 2>&1") == 0 }

    /// Downloads a URL like Curlew: without the user's settings, content codings or redirects.
    ///
    /// - Throws: `UnexpectedResult` if curl cannot be run or fails.
    static func download(_ url: String, userAgent: String) throws -> Received {
        // Pass the values in the environment, so that the shell does not interpret them.
        setenv("TOUR_URL", url, 1)
        setenv("TOUR_USER_AGENT", userAgent, 1)
        guard let pipe = popen(#"exec curl -q -sS -g -A "$TOUR_USER_AGENT" -- "$TOUR_URL""#, "r") else {
            throw UnexpectedResult("curl cannot be started: errno \(errno)")
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
        guard status == 0 else { throw UnexpectedResult("curl failed with status \(status >> 8)") }
        return received
    }
}
