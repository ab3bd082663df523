// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// Finds out whether secrets are written because the environment names a file for them, as libcurl alone would do.
struct KeyLogScene {
    struct Result: Codable {
        var status: Int
        /// Bytes in the file; -1 when the environment names no file.
        var written: Int
    }

    let servers: Servers

    func run() async throws -> Result {
        let path = ProcessInfo.processInfo.environment["SSLKEYLOGFILE"] ?? ""
        let session = try Session(trust: servers.trust)
        let (_, head) = try await session.data(for: Request(.get, servers.secure + "/data"))
        let written = (try? Data(contentsOf: URL(filePath: path)).count) ?? (path.isEmpty ? -1 : 0)
        return Result(status: head.status.code, written: written)
    }
}
