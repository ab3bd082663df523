// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Finds the descriptors that a program inherits if it is started during transfers.
struct ExecScene {
    struct Result: Codable {
        /// The descriptors of the started programs, except 0 to 2 and the listed folder, as `number -> target`.
        var inherited: [String]
        /// The descriptors of a program that inherits one on purpose, which shows that the listing works.
        var control: [String]
        /// The number of our own open descriptors during the transfers.
        var open: Int
    }

    private let servers: Servers

    init(_ servers: Servers) { self.servers = servers }

    func run() async throws -> Result {
        let session = try Session(trust: servers.trust)
        var held: [TransferBytes.Iterator] = []
        for origin in [servers.plain, servers.plain, servers.plain, servers.secure] {
            var bytes = session.transfer(Request(.get, origin + "/held")).bytes.makeAsyncIterator()
            _ = try await bytes.next()
            held.append(bytes)
        }
        var inherited = listed()
        for number in 0..<20 {
            // Names that keep the resolver's thread and its socket pair for a while. libcurl 7.88 creates the pair
            // without close-on-exec and passes it to the loop in the same turn; the flag is set after two calls to the
            // loop.
            let lookup = session.transfer(Request(.get, "http://host\(number).nonexistent.invalid/")).start()
            for _ in 0..<2 { _ = await session.transfers }
            inherited += listed()
            lookup.cancel()
        }
        let open = ProcessFigures.targets().count
        let control = Glibc.open("/dev/zero", O_RDONLY)
        defer { close(control) }
        return withExtendedLifetime(held) { Result(inherited: inherited, control: listed(), open: open) }
    }

    /// Runs a program that lists its own descriptors and returns the list.
    private func listed() -> [String] {
        guard let program = popen("exec /bin/ls -l /proc/self/fd", "r") else { return ["popen failed"] }
        var bytes: [UInt8] = []
        while case let byte = getc(program), byte != EOF { bytes.append(UInt8(byte)) }
        pclose(program)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.count > 3 else { return ["ls failed"] }
        return lines.compactMap { line in
            let words = line.split(separator: " ")
            guard words.count >= 3, words[words.count - 2] == "->", let number = Int(words[words.count - 3]) else {
                return nil
            }
            let target = words[words.count - 1]
            if number <= 2 || target.hasPrefix("/proc/") && target.hasSuffix("/fd") { return nil }
            return "\(number) -> \(target)"
        }
    }
}
