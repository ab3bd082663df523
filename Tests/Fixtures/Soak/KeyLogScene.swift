// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

/// Checks whether TLS secrets are written to the file that the environment names, as libcurl does by default.
struct KeyLogScene {
    struct Result: Codable {
        var status: Int
        /// The size of the file in bytes; -1 if the environment names no file.
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
