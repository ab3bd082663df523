// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@Suite(.enabledIfInstalled(.nginx), .peer(.nginx), .timeLimit(.minutes(5)))
struct NginxTests {
    private let server: NginxServer

    init() throws { server = try NginxServer.shared() }

    private func digest(_ transfer: Transfer<Data>) async throws -> (length: Int, sha256: String) {
        var (length, stream) = (0, SHA256Stream())
        for try await chunk in transfer.bytes {
            length += chunk.count
            stream.update(chunk)
        }
        return (length, stream.hex)
    }

    @Test(arguments: PeerRoute.allCases) func smallFileIsReceived(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let response = try await session.transfer(Request(route.url(server, "/small.txt"))).response()
        #expect(response.status == .ok)
        #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
        #expect(response.head.contentType == "text/plain")
        #expect(response.head.version == route.version)
        #expect(response.metrics.version == route.version)
        #expect(response.metrics.tlsVersion == (route.isSecure ? "TLSv1.3" : nil))
        #expect(response.metrics.responseBodyBytes == Int64(PeerInstance.small.utf8.count))
    }

    @Test(arguments: PeerRoute.allCases) func largeFileIsReceived(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let transfer = session.transfer(Request(route.url(server, "/large.bin")))
        let (length, sha256) = try await digest(transfer)
        #expect(length == PeerInstance.large.length)
        #expect(sha256 == PeerInstance.large.sha256)
        #expect(transfer.metrics?.version == route.version)
        #expect(transfer.currentProgress.expectedToReceive == Int64(length))
        #expect(transfer.currentProgress.isFinished)
    }

    @Test(arguments: PeerRoute.allCases) func connectionIsReused(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let request = Request(route.url(server, "/small.txt"))
        let first = try await session.transfer(request).response().metrics
        let second = try await session.transfer(request).response().metrics
        #expect(!first.isConnectionReused)
        #expect(second.isConnectionReused == route.reusesConnections)
        guard route.reusesConnections else { return }
        #expect(first.localAddress == second.localAddress)
        #expect(second.connect == .zero)
        #expect(second.secure == .zero)
    }

    @Test(arguments: Session.Configuration.TLS.Version.allCases)
    func tlsSessionIsResumed(_ version: Session.Configuration.TLS.Version) async throws {
        let session = try PeerRoute.http1OverTLS.session(server) { $0.tls.maximumVersion = version }
        let request = Request(server.secureURL("/once.txt"))
        let first = try await session.transfer(request).response()
        let second = try await session.transfer(request).response()
        #expect(first.head[.connection] == "close")
        #expect(!first.metrics.isTLSSessionResumed)
        #expect(!second.metrics.isConnectionReused)
        #expect(second.metrics.isTLSSessionResumed)
        #expect(second.metrics.tlsVersion == "TLSv\(version.rawValue)")
    }

    @Test(arguments: PeerRoute.allCases)
    func concurrentRangeRequestsReturnTheirRanges(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let bodies = try await withThrowingTaskGroup(of: (Int, Data, Status).self) { group in
            for number in 0..<64 {
                let range = "bytes=\(number * 65_536)-\(number * 65_536 + 65_535)"
                group.addTask {
                    let request = Request(route.url(server, "/large.bin"), fields: [.range: .init(range)])
                    let (body, head) = try await session.data(for: request)
                    return (number, body, head.status)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(bodies.count == 64)
        for (number, body, status) in bodies {
            #expect(status == .partialContent)
            #expect(Array(body) == PeerInstance.large.bytes(in: number * 65_536..<(number + 1) * 65_536))
        }
    }

    @Test func rangeRequestReturnsTheRange() async throws {
        let session = try PeerRoute.plain.session(server)
        let request = Request(server.url("/large.bin"), fields: [.range: "bytes=1000000-1000999"])
        let (body, head) = try await session.data(for: request)
        #expect(head.status == .partialContent)
        #expect(head[.contentRange] == "bytes 1000000-1000999/\(PeerInstance.large.length)")
        #expect(Array(body) == PeerInstance.large.bytes(in: 1_000_000..<1_001_000))
    }

    @Test(arguments: PeerRoute.allCases) func fileUploadIsStored(_ route: PeerRoute) async throws {
        let body = PatternBody(seed: 16, length: 16 << 20)
        let name = UUID().uuidString
        let source = FileManager.default.temporaryDirectory.appending(path: "curlew-\(name)")
        try Data(body.bytes).write(to: source)
        defer { try? FileManager.default.removeItem(at: source) }

        let session = try route.session(server)
        let request = Request(.put, route.url(server, "/upload/\(name)"), body: .file(source.path))
        let response = try await session.transfer(request).response()
        #expect(response.status == .created)
        #expect(response.metrics.version == route.version)
        #expect(response.metrics.requestBodyBytes == Int64(body.length))
        let stored = try Data(contentsOf: URL(filePath: "\(server.uploads)/\(name)"))
        #expect(SHA256Stream.hex(of: stored) == body.sha256)
    }

    @Test(arguments: PeerRoute.allCases) func headRequestReturnsNoBody(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let (body, head) = try await session.data(for: Request(.head, route.url(server, "/large.bin")))
        #expect(head.status == .ok)
        #expect(head.contentLength == Int64(PeerInstance.large.length))
        #expect(body.isEmpty)
    }

    /// Absolute and relative redirects with the body that nginx adds, and a redirect to plain HTTP.
    @Test(arguments: PeerRoute.allCases) func redirectsAreFollowed(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        for (path, status) in [("/moved", 301), ("/elsewhere", 307)] {
            let response = try await session.transfer(Request(route.url(server, path))).response()
            #expect(String(decoding: response.value, as: UTF8.self) == PeerInstance.small)
            #expect(response.head.url == route.url(server, "/small.txt"))
            #expect(response.head.history.map(\.head.status.code) == [status])
            #expect(response.metrics.isConnectionReused == route.reusesConnections)
        }
        let request = Request(route.url(server, "/other"), options: Request.Options(redirects: .sameOrigin()))
        let record = try await StreamRecord(session.transfer(request))
        #expect(record.head?.status == (route == .plain ? .ok : .permanentRedirect))
        let (body, head) = try await session.data(for: Request(.head, route.url(server, "/moved")))
        #expect(head.status == .ok && body.isEmpty && head.history.count == 1)
    }

    @Test(arguments: PeerRoute.allCases) func missingFileReturnsNotFound(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let (body, head) = try await session.data(for: Request(route.url(server, "/missing.txt")))
        #expect(head.status == .notFound)
        #expect(String(decoding: body, as: UTF8.self).contains("404 Not Found"))
    }

    /// Other requests use the connection of a transfer whose reader has stopped, and its buffered bytes are limited.
    @Test func slowReaderBlocksOnlyItsStream() async throws {
        let session = try PeerRoute.http2.session(server)
        let transfer = session.transfer(Request(server.secureURL("/large.bin")))
        var stream = SHA256Stream()
        var length = 0
        for try await chunk in transfer.bytes {
            if length == 0 {
                for _ in 0..<200 {
                    let small = try await session.transfer(Request(server.secureURL("/small.txt"))).response()
                    #expect(String(decoding: small.value, as: UTF8.self) == PeerInstance.small)
                    #expect(small.metrics.isConnectionReused)
                }
                #expect(transfer.state == .running)
                #expect(transfer.currentProgress.received <= 2 << 20)
            }
            length += chunk.count
            stream.update(chunk)
        }
        #expect(length == PeerInstance.large.length)
        #expect(stream.hex == PeerInstance.large.sha256)
    }

    @Test(arguments: PeerRoute.allCases)
    func cancellationDuringTheBodyEndsTheTransfer(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        let transfer = session.transfer(Request(route.url(server, "/large.bin")))
        var received = 0
        let error = await #expect(throws: NetworkError.self) {
            for try await chunk in transfer.bytes {
                received += chunk.count
                if received >= 4 << 20 { transfer.cancel() }
            }
        }
        #expect(error?.kind == .cancelled)
        #expect(error?.phase == .receiving)
        #expect(received >= 4 << 20 && received < PeerInstance.large.length)

        let next = try await session.transfer(Request(route.url(server, "/small.txt"))).response()
        #expect(String(decoding: next.value, as: UTF8.self) == PeerInstance.small)
        // An HTTP/2 connection is kept unless libcurl has buffered data of the stream.
        if !route.isHTTP2 { #expect(!next.metrics.isConnectionReused) }
    }

    @Test(arguments: PeerRoute.allCases) func idleConnectionClosedByTheServerIsReplaced(_ route: PeerRoute) async throws
    {
        let impatient = try NginxServer(.init(keepAlive: "50ms"))
        let session = try route.session(impatient)
        let request = Request(route.url(impatient, "/small.txt"))
        let first = try await session.transfer(request).response()

        let observer = Session()
        var status = ""
        repeat {
            let (body, _) = try await observer.data(for: Request(impatient.url("/connections")))
            status = String(decoding: body, as: UTF8.self)
        } while !status.hasPrefix("Active connections: 1 \n")

        let second = try await session.transfer(request).response()
        #expect(second.status == .ok)
        #expect(!second.metrics.isConnectionReused)
        #expect(first.metrics.localAddress != second.metrics.localAddress)
    }

    /// Requests succeed even if the server closes the idle connection at the same moment.
    @Test(arguments: PeerRoute.http1Only) func requestsSurviveClosingIdleConnections(_ route: PeerRoute) async throws {
        let impatient = try NginxServer(.init(keepAlive: "1ms"))
        let session = try route.session(impatient)
        for _ in 0..<500 {
            let (body, head) = try await session.data(for: Request(route.url(impatient, "/small.txt")))
            #expect(head.status == .ok)
            #expect(String(decoding: body, as: UTF8.self) == PeerInstance.small)
        }
    }
}
