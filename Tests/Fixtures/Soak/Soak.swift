// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-soak is the child process of tests that measure a process: what is open, what runs, how much memory is used.
// LeakTests start it with servers of their own and read one line of JSON from its standard output.

import Curlew
import FoundationEssentials
import Glibc

@main
struct Soak {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let scene = arguments.first, arguments.count == 4 else {
            print("usage: curlew-soak mixed|slow|exec PLAIN-ORIGIN SECURE-ORIGIN ROOTS-PEM")
            exit(2)
        }
        let servers = Servers(plain: arguments[2], secure: arguments[3], roots: arguments[4])
        ProcessFigures.closeInheritedOnExec()
        switch scene {
        case "mixed": try await report(MixedScene(servers).run())
        case "slow": try await report(SlowScene(servers).run())
        case "exec": try await report(ExecScene(servers).run())
        default: exit(2)
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

    var trust: CustomRoots { CustomRoots(pem: roots) }
}
