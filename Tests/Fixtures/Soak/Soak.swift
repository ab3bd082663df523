// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-soak is a process for measurements of descriptors, threads and memory, and for tests that need their own
// environment variables. LeakTests and SystemTrustTests start it with their own servers and read one line of JSON from
// its standard output; the scene `faults` is for manual use and runs for any given time.

import Curlew
import FoundationEssentials
import Glibc

@main
struct Soak {
    private static let usage = """
        usage: curlew-soak mixed|slow|exec|handshakes|release|keylog|rootless PLAIN-ORIGIN SECURE-ORIGIN ROOTS-PEM
               curlew-soak trust SECURE-ORIGIN…
               curlew-soak memory PLAIN-ORIGIN
               curlew-soak multipart PLAIN-ORIGIN MEBIBYTES
               curlew-soak crowd
               curlew-soak faults SECONDS [SEED]
        """

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        ProcessFigures.closeInheritedOnExec()
        switch (arguments.first, arguments.count) {
        case ("mixed", 4): try await report(MixedScene(Servers(arguments)).run())
        case ("slow", 4): try await report(SlowScene(Servers(arguments)).run())
        case ("exec", 4): try await report(ExecScene(Servers(arguments)).run())
        case ("handshakes", 4): try await report(HandshakeScene(Servers(arguments)).run())
        case ("release", 4): try await report(ReleaseScene(Servers(arguments)).run())
        case ("keylog", 4): try await report(KeyLogScene(servers: Servers(arguments)).run())
        case ("rootless", 4): try await report(RootlessScene(servers: Servers(arguments)).run())
        case ("trust", 2...): try await report(DefaultTrustScene(origins: Array(arguments.dropFirst())).run())
        case ("multipart", 3):
            try await report(MultipartScene(origin: arguments[1], mebibytes: Int64(arguments[2]) ?? 1).run())
        case ("memory", 2): try await report(MemoryScene(origin: arguments[1]).run())
        case ("crowd", 1): try await report(CrowdScene().run())
        case ("faults", 2...3):
            let seed = arguments.count == 3 ? UInt64(arguments[2]) : UInt64.random(in: 0..<1_000_000)
            guard let seconds = Int(arguments[1]), let seed else { fallthrough }
            exit(try await FaultsScene(time: .seconds(seconds), seed: seed).run())
        default:
            print(usage)
            exit(2)
        }
    }

    private static func report(_ result: some Encodable) throws {
        print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
    }
}

/// The servers of the parent process.
struct Servers: Sendable {
    let plain: String
    let secure: String
    let roots: String

    init(_ arguments: [String]) { (plain, secure, roots) = (arguments[1], arguments[2], arguments[3]) }

    var trust: CustomRoots { get throws { try CustomRoots(pem: roots) } }
}
