// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Testing

@testable import Curlew

/// The probes of a path, and their results.
@Suite(.timeLimit(.minutes(5)))
struct ProbeTests {
    typealias Path = PathMonitor.Path

    @Test func resultOfAProbeIsForThatConnection() async {
        let check = ProbeCheck(PathMonitor.Probe { _ in true })
        let (eth, wifi) = (Path.Interface("eth0"), Path.Interface("wlan0", kind: .wifi))
        let path = Path(.satisfied, outward: eth)
        #expect(check.path(path).status == .unknown)
        #expect(await check.run(path))
        #expect(check.path(path).isSatisfied)
        #expect(check.path(Path(.satisfied, outward: eth, isMetered: true)).isSatisfied)
        #expect(check.path(Path(.satisfied, outward: wifi)).status == .unknown)
        #expect(check.path(path).isSatisfied)
        #expect(check.path(Path(.unsatisfied, obstacle: .linkDown)).obstacle == .linkDown)
        #expect(check.path(path).status == .unknown)
    }

    @Test func resultOfAProbeThatBeganBeforeAnInterruptionIsIgnored() async {
        let interrupted = Lock<ProbeCheck?>(nil)
        let check = ProbeCheck(
            PathMonitor.Probe { _ in
                _ = interrupted.withLock { $0 }?.path(Path(.unsatisfied, obstacle: .linkDown))
                return false
            })
        let path = Path(.satisfied, outward: Path.Interface("eth0"))
        interrupted.withLock { $0 = check }
        #expect(await !check.run(path))
        #expect(check.path(path).status == .unknown)
        interrupted.withLock { $0 = nil }
        #expect(await !check.run(path))
        #expect(check.path(path).obstacle == .probeFailed)
    }

    @Test func readyProbesAskServers() async throws {
        let server = try MockServer { _ in .text("log in") }
        server.on("GET", "/generate_204", .status(204))
        server.on("GET", "/moved", .redirect(to: "/generate_204"))
        let path = Path(.satisfied)
        func result(_ place: String, accepting statuses: StatusSet = [.noContent]) async -> Bool {
            await PathMonitor.Probe.request(
                Request(server.url(place)), by: Session(), accepting: statuses
            ).check(path)
        }
        #expect(await result("/generate_204"))
        #expect(await !result("/portal"))
        #expect(await result("/portal", accepting: [.ok]))
        #expect(await !result("/moved"), "redirects are not followed")
        let port = Int(server.port)
        #expect(await PathMonitor.Probe.connection(to: "127.0.0.1", port: port).check(path))
        #expect(await PathMonitor.Probe.connection(to: "localhost", port: port).check(path))
        server.stop()
        #expect(await !PathMonitor.Probe.connection(to: "127.0.0.1", port: port).check(path))
        #expect(await !PathMonitor.Probe.connection(to: "127.0.0.1", port: 70_000).check(path))
        // The addresses of 192.0.2.0/24 are for documentation: routers drop packets to them, or the kernel refuses
        // them.
        let silent = PathMonitor.Probe.connection(to: "192.0.2.1", port: 9, within: .milliseconds(50))
        #expect(await !silent.check(path))
    }
}
