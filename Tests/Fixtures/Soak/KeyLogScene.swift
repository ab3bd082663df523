// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials
import Glibc

/// Finds out whether secrets are written because the environment names a file for them, as libcurl alone would do.
struct KeyLogScene {
    struct Result: Codable {
        var status: Int
        /// Bytes in the file.
        var written: Int
    }

    let servers: Servers

    func run() async throws -> Result {
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).keys").path
        defer { unlink(path) }
        setenv("SSLKEYLOGFILE", path, 1)
        let session = try Session(trust: servers.trust)
        let (_, head) = try await session.data(for: Request(.get, servers.secure + "/data"))
        let written = (try? Data(contentsOf: URL(filePath: path)).count) ?? 0
        return Result(status: head.status.code, written: written)
    }
}
