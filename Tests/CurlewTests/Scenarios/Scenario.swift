// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Scenarios run complete transfers between a Session and a MockServer over real sockets, one concern in each file.
// Gates order the steps: events that have to happen "meanwhile" happen while the server is stalled at a gate, not
// after a delay.

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Returns the NetworkError that an operation throws; no error or another type of error fails the test.
func networkError<Value>(
    _ location: SourceLocation = #_sourceLocation, of operation: () async throws -> Value
) async throws -> NetworkError {
    try await #require(throws: NetworkError.self, sourceLocation: location) { _ = try await operation() }
}

/// All elements of a stream, in order.
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
    /// Waits until the loop has counted `bytes` bytes of a transfer.
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
    /// Waits for the end, successful or not, without reading the body.
    func waitUntilFinished() async { for await _ in progress {} }

    /// Starts the transfer through an observer, so that the session does not keep it alive.
    func startWithoutDetaching() async {
        var observer = progress.makeAsyncIterator()
        _ = await observer.next()
    }
}

extension MockServer {
    /// The digests of the bodies received, which read better in a failed expectation than the bodies do.
    var digests: [String] { requests.map(\.bodySHA256) }

    /// The number of requests that arrived completely.
    var completeRequests: Int { requests.count { $0.isBodyComplete } }

    var requestCount: Int { requests.count }
}

extension Collection<UInt8> {
    /// The SHA-256 digest; Swift Testing takes minutes to describe the difference of two large bodies.
    var sha256: String { SHA256Stream.hex(of: self) }
}

/// Checks that a reader that stops reading holds the server back without blocking other transfers.
///
/// - Parameters:
///   - response: A response with a body of 20 MiB.
///   - wireBytes: The size of the encoded body.
/// - Returns: The digest of the body that the slow reader received.
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
    // Meanwhile the server has enough time to send the whole body to another transfer on the same loop.
    let other = try await session.data(for: Request(server.url("/"))).0
    #expect(other.count == 20 << 20, sourceLocation: location)
    #expect(server.bytesSent - wireBytes < 8 << 20, sourceLocation: location)
    #expect(await session.transfers.map(\.state) == [.running], sourceLocation: location)
    while let chunk = try await held.next() { digest.update(Data(chunk)) }
    return digest.hex
}

extension PatternBody {
    /// The bytes as `Data`, whose comparison is fast in debug builds too.
    var data: Data { Data(bytes) }
}

/// A temporary file that is deleted with its object.
final class ScratchFile: Sendable {
    let path: String

    init(_ bytes: some Sequence<UInt8>) throws {
        path = FileManager.default.temporaryDirectory.path + "/curlew-\(UUID().uuidString)"
        try write(bytes)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ bytes: some Sequence<UInt8>) throws { try Data(bytes).write(to: URL(filePath: path)) }
}
