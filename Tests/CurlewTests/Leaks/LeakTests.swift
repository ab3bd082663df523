// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

/// Open descriptors, running threads and memory, counted in a child process.
@Suite("Leaks", .serialized, .timeLimit(.minutes(5)))
struct LeakTests {
    private struct Figures: Decodable, Equatable {
        var descriptors: [String]
        var loopThreads: Int
        var sourceThreads: Int
    }

    private struct Mixed: Decodable {
        var base: Figures
        var final: Figures
        var outcomes: [String: Int]
        var baseMemory: Int
        var finalMemory: Int
    }

    private struct Slow: Decodable {
        var base: Int
        var peak: Int
        var received: Int
        var isIntact: Bool
        var fillings: Int
    }

    private struct Multipart: Decodable {
        var base: Int
        var peak: Int
        var sent: Int
        var received: Int
        var isPartFinished: [Bool]
    }

    private struct Memory: Decodable {
        var base: Int
        var full: Int
        var final: Int
        var received: Int
    }

    private struct Exec: Decodable {
        var inherited: [String]
        var control: [String]
        var open: Int
    }

    private struct Handshakes: Decodable {
        var outcomes: [String: Int]
        var baseMemory: Int
        var finalMemory: Int
        var base: Figures
        var final: Figures
    }

    private struct Release: Decodable {
        var base: Figures
        var inUse: Figures
        var final: Figures
        var outcomes: [String: Int]
    }

    private struct KeyLog: Decodable, Equatable {
        var status: Int
        var written: Int
    }

    private struct Rootless: Decodable {
        var system: String
        var hint: String
        var both: String
        var instead: Int
        var any: Int
    }

    private struct Crowd: Decodable {
        var successes: Int
        var failures: [String: Int]
        var peak: Int
        var longestTurn: Int
        var connections: Int
        var seconds: Double
        var processorSeconds: Double
    }

    /// A plain and a secure server with the routes that curlew-soak asks for.
    private struct Servers {
        let plain: MockServer
        let secure: MockServer
        let authority: TestAuthority

        init() throws {
            authority = try TestAuthority()
            plain = try MockServer()
            secure = try MockServer(tls: authority.issue())
            for server in [plain, secure] {
                server.on("GET", "/data", .text("hello"))
                server.on("GET", "/closing", .text("hello").closing())
                server.on("GET", "/stream", .pattern(PatternBody(seed: 1, length: 300_000)).chunked(size: 7001))
                server.on("PUT", "/upload") { request in .text("\(request.bodyLength)", status: 201) }
                // The gate never opens: the server gives up when the client closes the connection.
                server.on("GET", "/held", .text("hello").fault(.stall(Gate()), at: .body(2)))
                server.on("GET", "/reset", .text("hello").fault(.reset, at: .body(2)))
                server.on("GET", "/slow", .pattern(PatternBody(seed: 512, length: 512 << 20)))
            }
        }

        func arguments(_ scene: String) -> [String] { [scene, plain.origin, secure.origin, authority.certificatePEM] }
    }

    @Test func thousandMixedTransfersLeakNoDescriptorsThreadsOrMemory() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("mixed"), as: Mixed.self)
        #expect(
            report.outcomes == [
                "data: 200 5": 100, "secure: 200 5": 100, "stream: 300000": 100, "upload: 201 6": 100,
                "uploadStream: 201 6": 100, "uploadFile: 201 \(try lengthOfLength("/etc/passwd"))": 100,
                "cancelled: cancelled": 100, "abandoned: 2": 100, "failed: connection_lost": 100,
                "refused: cannot_connect": 100,
            ])
        #expect(report.base.loopThreads == 0)
        #expect(report.final == report.base)
        #expect(report.base.descriptors.count < 20, "\(report.base.descriptors)")
        // An engine transfer with its head and counters takes over 2 KiB: a thousand leaks would exceed the bound.
        #expect(report.finalMemory - report.baseMemory < 2048, "KiB")
        #expect(await servers.plain.waitUntil(openConnections: 0))
        #expect(await servers.secure.waitUntil(openConnections: 0))
        #expect(servers.plain.violations == [])
        #expect(servers.secure.violations == [])
    }

    @Test func slowReaderOfLongBodyUsesBoundedMemory() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("slow"), as: Slow.self)
        #expect(report.received == 512 << 20)
        #expect(report.isIntact)
        #expect(report.fillings > 100, "the reader was not slow")
        #expect(report.base > 1024)
        #expect(report.peak - report.base <= 8 << 10, "KiB")
    }

    @Test func multipartUploadUsesBoundedMemory() async throws {
        let servers = try Servers()
        servers.plain.on("POST", "/form") { request in .text("\(request.bodyLength)") }
        let report = try await SoakProcess.run(["multipart", servers.plain.origin, "512"], as: Multipart.self)
        #expect(report.sent == report.received && report.received > 512 << 20)
        #expect(report.isPartFinished == [true, true, true])
        #expect(report.base > 1024)
        #expect(report.peak - report.base <= 8 << 10, "KiB")
    }

    @Test func idleProcessReturnsMemory() async throws {
        let servers = try Servers()
        servers.plain.on("GET", "/large", .pattern(PatternBody(seed: 4, length: 4 << 20)))
        let report = try await SoakProcess.run(["memory", servers.plain.origin], as: Memory.self)
        #expect(report.received == 32 * 4 << 20)
        #expect(report.full - report.base > 48 << 10, "KiB")
        #expect(report.final - report.base <= 16 << 10, "KiB")
    }

    @Test func childProcessInheritsNoDescriptors() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("exec"), as: Exec.self)
        #expect(report.inherited == [])
        #expect(report.control.count == 1)
        #expect(report.control.first?.hasSuffix("/dev/zero") == true)
        #expect(report.open > 10, "epoll, eventfd, wake-up pairs, four sockets")
    }

    @Test func thousandTLSHandshakesLeakNothing() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("handshakes"), as: Handshakes.self)
        #expect(report.outcomes == ["200": 500, "pin": 250, "revocation": 250])
        #expect(report.final == report.base)
        // A TLS connection takes about 50 KiB and a trust domain about 10 KiB: a thousand leaks would exceed the bound.
        #expect(report.finalMemory - report.baseMemory < 2048, "KiB")
        #expect(servers.secure.requestCount == 600)
    }

    /// C-17, B-125: a program may forget its sessions.
    @Test func sessionsReleasedWithoutShutdownLeakNoThreadsOrDescriptors() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("release"), as: Release.self)
        #expect(report.outcomes == ["200 5": 40, "left after 2": 20])
        #expect(report.base.loopThreads == 0)
        // Each session has a thread, an epoll descriptor and at least one connection.
        #expect(report.inUse.loopThreads == 20)
        #expect(report.inUse.descriptors.count >= report.base.descriptors.count + 20 * 3)
        #expect(report.final == report.base)
        #expect(await servers.plain.waitUntil(openConnections: 0))
        #expect(await servers.secure.waitUntil(openConnections: 0))
    }

    @Test func keyLogFileVariableIsIgnored() async throws {
        let servers = try Servers()
        let path = FileManager.default.temporaryDirectory.appending(path: "curlew-\(UUID()).keys").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        // The child starts with the variable: setting it later would race with threads that read the environment.
        let report = try await SoakProcess.run(
            servers.arguments("keylog"), environment: ["SSLKEYLOGFILE": path], as: KeyLog.self)
        #expect(servers.secure.requestCount == 1)
        #expect(report == KeyLog(status: 200, written: 0))
    }

    @Test func missingSystemRootsAreReportedWithHint() async throws {
        let servers = try Servers()
        let report = try await SoakProcess.run(servers.arguments("rootless"), as: Rootless.self)
        #expect(report.system == "roots" && report.both == "roots" && report.hint.contains("ca-certificates"))
        #expect(report.instead == 200 && report.any == 200)
        #expect(servers.secure.requestCount == 2)
    }

    @Test func tenThousandConcurrentRequestsSucceed() async throws {
        let report = try await SoakProcess.run(["crowd"], as: Crowd.self)
        #expect(report.successes == 10_000)
        #expect(report.failures == [:])
        #expect(report.connections == 64)
        // Client, server and ten thousand tasks together.
        #expect(report.peak <= 250 << 10, "KiB")
    }
}
