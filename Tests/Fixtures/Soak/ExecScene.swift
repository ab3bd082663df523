// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Finds out which of our descriptors a program gets that is started in the middle of transfers.
struct ExecScene {
    struct Result: Codable {
        /// What the started programs had open beyond 0 to 2 and the folder they listed, as `number -> target`.
        var inherited: [String]
        /// The same with a descriptor left open on purpose, which shows that the listing works.
        var control: [String]
        /// Our own descriptors that were open meanwhile.
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
            // Names that take the resolver's thread, and its socket pair, for a while. libcurl 7.88 makes the pair without
            // close-on-exec and shows it to the loop in the same turn: two visits to the loop later it is marked.
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

    /// What a program that lists its own descriptors finds.
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
