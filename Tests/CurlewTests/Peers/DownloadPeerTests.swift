// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Downloads from nginx: ranges, conditional requests and file names.
@Suite(.enabledIfInstalled(.nginx), .peer(.nginx), .timeLimit(.minutes(5)))
struct DownloadPeerTests {
    private let server: NginxServer
    private let folder: Folder
    private let whole: Checksum = .sha256(PeerInstance.large.sha256)

    init() throws {
        server = try NginxServer.shared()
        folder = try Folder()
    }

    @Test(arguments: PeerRoute.allCases) func cancelledDownloadResumesByRange(_ route: PeerRoute) async throws {
        let session = try route.session(server)
        var request = Request(route.url(server, "/large.bin"))
        request.options.bandwidth = Request.BandwidthLimit(download: .mebibytes(8))
        let first = session.downloadTransfer(request, to: .directory(folder.path), expecting: whole).start()
        for await progress in first.progress where progress.received >= 1 << 20 { break }
        let token = try #require(await first.cancel(producingResumeToken: true))
        #expect(token.offset >= 1 << 20 && token.total == Int64(PeerInstance.large.length))
        let file = try await session.download(
            Request(route.url(server, "/large.bin")), to: .directory(folder.path), expecting: whole)
        #expect(file.resumedFrom == token.offset && file.checksum == whole && file.response.status == .partialContent)
        #expect(file.response.contentRange?.bytes?.lowerBound == token.offset)
        #expect(folder.names == ["large.bin"])
    }

    /// HTTP/1.1 uses several connections, HTTP/2 uses several streams of one connection.
    @Test(arguments: PeerRoute.allCases.filter(\.reusesConnections))
    func segmentedDownloadUsesSeveralConnectionsOrStreams(_ route: PeerRoute) async throws {
        let seen = SeenConnections()
        var request = Request(route.url(server, "/large.bin"))
        request.interceptors = [seen]
        var options = DownloadOptions()
        options.segments = 4
        let session = try route.session(server)
        let file = try await session.download(
            request, to: .directory(folder.path), expecting: whole, options: options)
        #expect(file.checksum == whole && folder.names == ["large.bin"])
        #expect(seen.responses > 1 && seen.connections.count <= (route.isHTTP2 ? 1 : 4))
    }

    /// The server limits the rate of each connection, so several connections are faster.
    @Test func segmentedDownloadUsesSeveralConnectionsUnderARateLimit() async throws {
        let seen = SeenConnections()
        var request = Request(PeerRoute.plain.url(server, "/paced.bin"))
        request.interceptors = [seen]
        var options = DownloadOptions()
        options.segments = 8
        let file = try await PeerRoute.plain.session(server).download(
            request, to: .directory(folder.path), expecting: whole, options: options)
        // One connection would need half a minute for the whole file.
        #expect(file.checksum == whole && seen.responses > 32)
        #expect((2...8).contains(seen.connections.count))
    }

    @Test func concurrentDownloadsGetUniqueNames() async throws {
        let session = try PeerRoute.allCases[0].session(server)
        let (url, path, whole) = (PeerRoute.allCases[0].url(server, "/large.bin"), folder.path, whole)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    _ = try await session.download(
                        Request(url), to: .directory(path), overwrite: .uniquify, expecting: whole)
                }
            }
            try await group.waitForAll()
        }
        #expect(folder.names == ["large (2).bin", "large (3).bin", "large (4).bin", "large.bin"])
    }
}

/// Records the connections of a request and of all attempts sent for it.
private final class SeenConnections: Interceptor, Sendable {
    private let seen = Lock<[String]>([])

    var connections: Set<String> { Set(seen.withLock { $0 }) }
    var responses: Int { seen.withLock { $0.count } }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        let response = try await next(request)
        let connection = response.head["Peer-Connection"]
        seen.withLock { $0.append(connection ?? "none") }
        return response
    }
}
