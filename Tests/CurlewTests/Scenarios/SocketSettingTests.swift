// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewShims
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew
@testable import CurlewEngine

/// Settings of sockets and connections, on the loopback interface.
@Suite(.timeLimit(.minutes(5)))
struct SocketSettingTests {
    private func session(_ change: @Sendable (inout Session.Configuration) throws -> Void) rethrows -> Session {
        try Session(change)
    }

    // MARK: Interfaces and addresses

    @Test func localAddressIsUsed() async throws {
        let server = try MockServer { _ in .text("ok") }
        let session = session { $0.tcp.localAddress = "127.0.0.5" }
        let response = try await session.transfer(Request(server.url())).response()
        #expect(response.metrics.localAddress.hasPrefix("127.0.0.5:"))
    }

    @Test func interfaceIsUsed() async throws {
        let server = try MockServer { _ in .text("ok") }
        let good = session { $0.tcp.interface = "lo" }
        do {
            _ = try await good.data(for: Request(server.url()))
        } catch {
            // An old kernel requires privileges.
            #expect(error.kind == .cannotConnect && error.message.contains("the interface lo"))
        }
        let bad = session { $0.tcp.interface = "none0" }
        let error = try await networkError { try await bad.data(for: Request(server.url())) }
        #expect(error.kind == .cannotConnect && error.message.contains("none0") && error.phase == .connecting)
        #expect(server.requests.count <= 1)
    }

    @Test func unusableLocalAddressIsNamed() async throws {
        let server = try MockServer { _ in .text("ok") }
        for (address, word) in [("192.0.2.77", "192.0.2.77"), ("::1", "family")] {
            let session = session { $0.tcp.localAddress = address }
            let error = try await networkError { try await session.data(for: Request(server.url())) }
            #expect(error.kind == .cannotConnect && error.message.contains(word), "\(error)")
        }
        #expect(server.connectionCount == 0)
    }

    @Test(arguments: ["lo", "l*", "*"])
    func forbiddenInterfaceIsNotUsed(_ pattern: String) async throws {
        let server = try MockServer { _ in .text("ok") }
        let forbidding = session { $0.tcp.forbiddenInterfaces = [.named(pattern)] }
        let error = try await networkError { try await forbidding.data(for: Request(server.url())) }
        #expect(error.kind == .cannotConnect && error.message.contains("lo") && error.message.contains("forbidden"))
        #expect(server.connectionCount == 0)
        let allowing = session { $0.tcp.forbiddenInterfaces = [.named("wwan*"), .cellular, .wifi] }
        _ = try await allowing.data(for: Request(server.url()))
    }

    /// Reads the TOS byte of the sockets of this process that are connected to a port.
    private func trafficClasses(toPort port: UInt16) -> [CInt] {
        (3..<4096).compactMap { descriptor in
            guard curlew_remote_port(CInt(descriptor)) == CInt(port) else { return nil }
            var (value, size) = (CInt(0), socklen_t(MemoryLayout<CInt>.size))
            return getsockopt(CInt(descriptor), CInt(IPPROTO_IP), IP_TOS, &value, &size) == 0 ? value : nil
        }
    }

    @Test func trafficClassMarksThePackets() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("ok").fault(.stall(gate), at: .start) }
        let session = session { $0.tcp.trafficClass = .bulk }
        let requests = [Request(server.url()), Request(server.url(), options: [.trafficClass(.voice)])]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for request in requests { group.addTask { _ = try await session.data(for: request) } }
            await gate.waitUntilReached(times: 2)
            #expect(trafficClasses(toPort: server.port).sorted() == [10 << 2, 46 << 2])
            gate.open()
            try await group.waitForAll()
        }
        let error = try await networkError {
            try await session.data(for: Request(server.url(), options: [.trafficClass(.init(rawValue: 64))]))
        }
        #expect(error.requestFlaw == .option)
    }

    @Test func urgencyIsAField() async throws {
        let server = try MockServer { _ in .text("ok") }
        var request = Request(server.url())
        request.fields[.priority] = Request.Urgency(9, isIncremental: true).fieldValue
        _ = try await Session().data(for: request)
        #expect(server.requests[0].field("Priority") == "u=7, i" && Request.Urgency().fieldValue == "u=3")
    }

    // MARK: Several addresses

    @Test(.enabled(if: SilentAddress() != nil, "this machine has no address ::1"))
    func silentAddressDelaysTheNextFamilyByTheAttemptDelay() async throws {
        let metrics = try await metricsOfTheFirst(from: ["::1", "127.0.0.1"])
        #expect(metrics.connect >= .milliseconds(90) && metrics.connect < .seconds(5))
    }

    @Test(arguments: [1, 3])
    func silentAddressDelaysTheNextOfItsFamilyByTheAttemptDelay(silentCount: Int) async throws {
        let silent = (2..<2 + silentCount).map { "127.0.0.\($0)" }
        let metrics = try await metricsOfTheFirst(from: silent + ["127.0.0.1"])
        #expect(metrics.connect >= .milliseconds(90 * silentCount) && metrics.connect < .seconds(5))
    }

    /// Sends two requests to a server at 127.0.0.1 under a name whose other addresses are silent, and returns the
    /// metrics of the first response.
    private func metricsOfTheFirst(from addresses: [String]) async throws -> TransferMetrics {
        // Another program may use the port of the server at one of the other addresses.
        var found: (MockServer, [SilentAddress])?
        for _ in 0..<20 where found == nil {
            let server = try MockServer { _ in .text("ok") }
            let silent = addresses.dropLast().compactMap { SilentAddress($0, port: server.port) }
            if silent.count == addresses.count - 1 { found = (server, silent) }
        }
        let (server, silent) = try #require(found)
        defer { withExtendedLifetime(silent) {} }
        let session = session {
            $0.tcp.addresses = ["two.test": addresses]
            $0.tcp.attemptDelay = .milliseconds(100)
        }
        let request = Request("http://two.test:\(server.port)/")
        let first = try await session.transfer(request).response()
        let second = try await session.transfer(request).response()
        #expect(first.metrics.remoteAddress == "127.0.0.1:\(server.port)", "libcurl may report another address")
        #expect(second.metrics.isConnectionReused && second.metrics.remoteAddress == first.metrics.remoteAddress)
        let pool = await session.pool
        #expect(server.connectionCount == 1 && pool.open == 1 && pool.idle == 1, "the other attempts have ended")
        return first.metrics
    }

    // MARK: Connections

    @Test func connectionIsClosedAfterItsRequests() async throws {
        let server = try MockServer { _ in .text("ok") }
        let session = session { $0.limits.requestsPerConnection = 2 }
        for _ in 0..<5 { _ = try await session.data(for: Request(server.url())) }
        #expect(server.connectionCount == 3)
    }

    @Test(arguments: [false, true])
    func preconnectedConnectionsAreUsed(isSecure: Bool) async throws {
        let authority = try TestAuthority()
        let server = try MockServer(tls: isSecure ? authority.issue() : nil) { _ in .text("ok") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        try await session.preconnect(to: Request(server.url()), connections: 3)
        #expect(await server.waitUntil(connectionCount: 3) && server.requests.isEmpty)
        let pool = await session.pool
        #expect(
            pool.open == 3 && pool.idle == 3 && pool.running == 0 && pool.servers.map(\.origin) == ["\(server.origin)"])
        try await (0..<3).forEachConcurrent(limit: 3) { _ in _ = try await session.data(for: Request(server.url())) }
        #expect(server.connectionCount == 3 && server.requests.count == 3)
        let error = try await networkError { try await session.preconnect(to: "http://127.0.0.1:1/") }
        #expect(error.kind == .cannotConnect)
    }

    @Test func preconnectDoesNotSelectTheProxyOnTheThreadOfTheSession() async throws {
        let server = try MockServer { _ in .text("ok") }
        let threads = Lock<Set<UInt>>([])
        let session = session {
            $0.proxy = .custom { _ in
                threads.withLock { _ = $0.insert(UInt(pthread_self())) }
                return nil
            }
        }
        try await session.preconnect(to: Request(server.url()), connections: 2)
        let thread = await session.thread
        #expect(server.connectionCount == 2)
        #expect(threads.withLock { !$0.isEmpty && !$0.contains(thread) })
    }

    @Test func preconnectIsASuccessForObservers() async throws {
        let server = try MockServer { _ in .text("ok") }
        let recorder = SessionEventRecorder()
        let session = Session(observers: [recorder])
        try await session.preconnect(to: Request(server.url()))
        await recorder.wait { events in events.words.contains { $0.hasPrefix("finished") } }
        #expect(recorder.events.words.contains("finished"))
    }

    @Test func preconnectedHTTP2ConnectionIsShared() async throws {
        let authority = try TestAuthority()
        let server = try HTTP2Server(tls: authority.issue()) { _ in .respond(200, text: "two") }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM))
        try await session.preconnect(to: Request(server.url()))
        for _ in 0..<2 { _ = try await session.data(for: Request(server.url())) }
        #expect(server.connectionCount == 1 && server.requests.count == 2 && server.violations.isEmpty)
    }

    @Test func poolShowsRunningAndQueuedTransfers() async throws {
        let gate = Gate()
        let server = try MockServer { _ in .text("ok").fault(.stall(gate), at: .start) }
        let session = session { $0.limits.connectionsPerHost = 2 }
        let changes = session.poolChanges(every: .milliseconds(5))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<5 { group.addTask { _ = try await session.data(for: Request(server.url())) } }
            await gate.waitUntilReached(times: 2)
            let full = await changes.first { $0.queued == 3 && $0.running == 2 }
            #expect(full?.open == 2 && full?.idle == 0)
            #expect(full?.servers.first?.description == "\(server.origin): 2 open, 0 idle, 2 running, 3 queued")
            gate.open()
            try await group.waitForAll()
        }
        let idle = await changes.first { $0.running == 0 && $0.queued == 0 }
        #expect(idle?.open == 2 && idle?.idle == 2)
    }

    // MARK: PING

    private static func isPing(_ received: ReceivedFrame) -> Bool {
        received.frame.kind == .ping && !received.frame.flags.contains(.ack)
    }

    @Test func pingKeepsASilentConnection() async throws {
        let authority = try TestAuthority()
        let gate = Gate()
        let server = try HTTP2Server(tls: authority.issue()) { _ in .now.fault(.stall(gate)).respond(200, text: "late")
        }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.http.ping = .init(interval: .milliseconds(20), limit: .seconds(20))
        }
        let task = Task { try await session.data(for: Request(server.url())) }
        await server.waitForFrame(3, where: Self.isPing)
        gate.open()
        #expect(try await task.value.0 == Data("late".utf8))
        // The connection is pinged without transfers, too, and stays usable.
        if CurlVersion.current.flushesIdleConnections {
            await server.waitForFrame(server.frames.count(where: Self.isPing) + 3, where: Self.isPing)
        }
        _ = try await session.data(for: Request(server.url()))
        #expect(server.connectionCount == 1 && server.violations.isEmpty)
    }

    @Test func deadServerIsNoticedByAPing() async throws {
        let authority = try TestAuthority()
        var options = HTTP2Server.Options()
        options.acknowledgesPings = false
        let gate = Gate()
        let server = try HTTP2Server(tls: authority.issue(), options: options) { request in
            request.path == "/silent" ? .now.fault(.stall(gate)).respond(200, text: "late") : .respond(200, text: "now")
        }
        let session = try Session(trust: CustomRoots(pem: authority.certificatePEM)) {
            $0.http.ping = .init(interval: .milliseconds(50), limit: .milliseconds(200))
        }
        let error = try await networkError { try await session.data(for: Request(server.url("/silent"))) }
        #expect(error.kind == .connectionLost && error.message.contains("PING"))
        _ = try await session.data(for: Request(server.url("/now")))
        #expect(server.connectionCount == 2)
    }
}
