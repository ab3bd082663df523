// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios run whole transfers between a Session and a MockServer over real sockets, one concern in each file. Gates
// make them causal: what has to happen "meanwhile" happens while the server is held, never after some time.

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// The error an operation must end with; a missing or foreign one fails the test.
func networkError<Value>(
    _ location: SourceLocation = #_sourceLocation, of operation: () async throws -> Value
) async throws -> NetworkError {
    try await #require(throws: NetworkError.self, sourceLocation: location) { _ = try await operation() }
}

/// Everything a stream of elements yielded, in order.
struct StreamRecord {
    var order: [String] = []
    var informational: [ResponseHead] = []
    var head: ResponseHead?
    var trailers: HeaderFields?
    var progress: [TransferProgress] = []
    var body = Data()

    mutating func take(_ element: TransferElement) {
        switch element {
        case .informational(let head):
            order.append("informational")
            informational.append(head)
        case .head(let head):
            order.append("head")
            self.head = head
        case .progress(let progress):
            order.append("progress")
            self.progress.append(progress)
        case .bytes(let chunk):
            order.append("bytes")
            body.append(contentsOf: chunk)
        case .trailers(let fields):
            order.append("trailers")
            trailers = fields
        }
    }

    init() {}

    init(_ transfer: Transfer<Data>) async throws {
        for try await element in transfer.stream { take(element) }
    }
}

extension Session {
    /// Waits until the loop has seen so many bytes of a transfer, asking the loop itself each time.
    func waitUntil(
        _ transfer: Transfer<Data>, has bytes: Int64, _ counted: any KeyPath<TransferProgress, Int64> & Sendable,
        _ location: SourceLocation = #_sourceLocation
    ) async {
        while !Task.isCancelled {
            guard let snapshot = transfers.first(where: { $0.id == transfer.id }) else { break }
            if snapshot.progress[keyPath: counted] >= bytes { return }
            await Task.yield()
        }
        Issue.record("the transfer never had \(bytes) bytes", sourceLocation: location)
    }
}

extension Transfer {
    /// Waits for the end, without taking the body or telling success from failure.
    func waitUntilFinished() async { for await _ in progress {} }

    /// Starts the transfer as a waiting task would, so that the session does not keep it.
    func startWithoutDetaching() async {
        var observer = progress.makeAsyncIterator()
        _ = await observer.next()
    }
}

extension MockServer {
    /// The digests of the bodies received, which read better in a failed expectation than the bodies do.
    var digests: [String] { requests.map(\.bodySHA256) }

    /// How many requests arrived whole.
    var completeRequests: Int { requests.count { $0.isBodyComplete } }

    var requestCount: Int { requests.count }
}

extension Collection<UInt8> {
    /// The digest: where two large bodies differ, to find out how takes Swift Testing minutes.
    var sha256: String { SHA256Stream.hex(of: self) }
}

/// Someone who reads nothing more for a while holds the server, and nobody else.
///
/// - Parameters:
///   - response: Answers with 20 MiB.
///   - wireBytes: How many they are on the wire.
/// - Returns: The digest of what the slow reader read in the end.
func digestOfASlowReader(
    of response: MockResponse, wireBytes: Int, _ location: SourceLocation = #_sourceLocation
) async throws -> String {
    var options = MockServer.Options()
    options.socketBufferSize = 64 << 10
    let server = try MockServer(options: options) { _ in response }
    let session = Session {
        $0.buffers.highWater = .kibibytes(256)
        $0.buffers.lowWater = .kibibytes(64)
    }
    var held = session.transfer(Request(server.url("/"))).bytes.makeAsyncIterator()
    var digest = SHA256Stream()
    digest.update(Data(try #require(try await held.next(), sourceLocation: location)))
    // Meanwhile the server has the time to send the whole body to somebody else on the same loop.
    let other = try await session.data(for: Request(server.url("/"))).0
    #expect(other.count == 20 << 20, sourceLocation: location)
    #expect(server.bytesSent - wireBytes < 8 << 20, sourceLocation: location)
    #expect(await session.transfers.map(\.state) == [.running], sourceLocation: location)
    while let chunk = try await held.next() { digest.update(Data(chunk)) }
    return digest.hex
}

extension PatternBody {
    /// The bytes as `Data`, which compares them quickly in debug builds too.
    var data: Data { Data(bytes) }
}

/// A file that is gone when the test is over.
final class ScratchFile: Sendable {
    let path: String

    init(_ bytes: some Sequence<UInt8>) throws {
        path = FileManager.default.temporaryDirectory.path + "/curlew-\(UUID().uuidString)"
        try write(bytes)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ bytes: some Sequence<UInt8>) throws { try Data(bytes).write(to: URL(filePath: path)) }
}
