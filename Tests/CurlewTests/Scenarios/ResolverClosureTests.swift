// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Look-ups of names by a closure of the user.
@Suite(.timeLimit(.minutes(5)))
struct ResolverClosureTests {
    private final class Log: Sendable {
        private let hosts = Lock<[String]>([])
        func add(_ host: String) { hosts.withLock { $0.append(host) } }
        var all: [String] { hosts.withLock { $0 } }
    }

    @Test func closureResolvesNamesOnce() async throws {
        let server = try MockServer { _ in .text("ok") }
        let log = Log()
        let session = Session(
            resolver: .custom { host in
                log.add(host)
                return .init(["127.0.0.1"])
            })
        try await (0..<8).forEachConcurrent(limit: 8) { number in
            _ = try await session.data(for: Request("http://Name\(number % 2).test:\(server.port)/"))
        }
        #expect(log.all.sorted() == ["name0.test", "name1.test"])
        _ = try await session.data(for: Request("http://localhost:\(server.port)/"))
        _ = try await session.copy().data(for: Request("http://name3.test:\(server.port)/"))
        #expect(log.all.count == 3)
    }

    @Test func addressesMayHaveAPort() async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue(hosts: ["name.test"])) { _ in .text("ok") }
        let session = Session(
            trust: try CustomRoots(pem: authority.certificatePEM),
            resolver: .custom { _ in .init(["127.0.0.1:\(server.port)"]) })
        let response = try await session.transfer("https://name.test/").response()
        #expect(response.metrics.remoteAddress == "127.0.0.1:\(server.port)")
        #expect(server.requests.map { $0.field("Host") } == ["name.test"])
    }

    @Test(
        arguments: [
            ("192.0.2.7", "192.0.2.7", nil), ("192.0.2.7:8443", "192.0.2.7", 8443), ("::1", "::1", nil),
            ("[2001:DB8::7]:443", "2001:db8::7", 443), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", nil),
        ] as [(String, String, UInt16?)])
    func addressesAreRead(text: String, ip: String, port: UInt16?) {
        #expect(SocketAddress(parsing: text) == SocketAddress(ip, port: port))
    }

    @Test(arguments: [
        "", "server", "server:80", ":80", "192.0.2.7:", "192.0.2.7:0", "192.0.2.7:65536", "192.0.2.7:+80", "[::1]",
        "[192.0.2.7]:80", "[::1]80", "[::1]:", "::1]:80", "192.0.2:80", "192.0.2.7:8 0",
    ])
    func invalidAddressesAreRefused(text: String) { #expect(SocketAddress(parsing: text) == nil) }

    @Test func failuresAreCannotResolve() async throws {
        struct NoEntry: Error, CustomStringConvertible { var description: String { "no entry in the registry" } }
        let session = Session(
            resolver: .custom { host in
                switch host {
                case "none.test": .init([])
                case "text.test": .init(["server"])
                default: throw NoEntry()
                }
            })
        for (host, words) in [
            ("none.test", "no address"), ("text.test", "“server”"), ("error.test", "no entry in the registry"),
        ] {
            let error = try await networkError { try await session.data(for: Request("http://\(host)/")) }
            #expect(error.kind == .cannotResolve && error.phase == .resolving && error.message.contains(words))
        }
    }

    @Test func lifetimeLimitsTheUseOfAddresses() async throws {
        let server = try MockServer { _ in .text("ok").closing() }
        let log = Log()
        let clock = StubClock()
        var configuration = Session.Configuration()
        // The jumps of the clock must not count as waits for the server.
        configuration.timeouts = Timeouts(connect: .seconds(10_000), responseHead: nil, idle: nil, minimumRate: nil)
        let core = SessionCore(
            configuration, trust: SystemTrust(),
            resolver: Session.Resolver.custom { host in
                log.add(host)
                return .init(["127.0.0.1"], lifetime: host == "long.test" ? .seconds(600) : .seconds(5))
            }.engine, clock: LoopClock(clock))
        let session = Session(core: core)
        for step in [Duration.zero, .seconds(4), .seconds(2), .seconds(100)] {
            clock.advance(by: step)
            // The loop reads the clock once a turn, so the first request may see the time before the jump.
            for host in ["other.test", "short.test", "long.test"] {
                // A new connection needs addresses each time.
                let request = Request("http://\(host):\(server.port)/", options: [.connection(.own)])
                _ = try await session.data(for: request)
            }
        }
        #expect(log.all.count { $0 == "short.test" } == 3)
        #expect(log.all.count { $0 == "long.test" } == 1)
    }

    @Test func cancellationCancelsTheClosure() async throws {
        let (started, cancelled, never) = (Gate(), Gate(), Gate())
        let session = Session(
            resolver: .custom { _ in
                started.open()
                await never.wait()
                cancelled.open()
                throw CancellationError()
            })
        let task = Task { try await session.data(for: "http://slow.test/") }
        await started.wait()
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancellation == true && error?.phase == .resolving)
        await cancelled.wait()
    }
}
