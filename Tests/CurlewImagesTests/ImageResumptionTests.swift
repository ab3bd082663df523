// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Foundation
import Testing

@testable import CurlewImages

/// Images that continue the received part of an interrupted transfer.
@Suite(.timeLimit(.minutes(5)))
struct ImageResumptionTests {
    /// A server that cuts the first response, and serves ranges.
    private func cutting(_ png: Data, tag: @escaping @Sendable (Int) -> String?, honoursRanges: Bool = true) throws
        -> MockServer
    {
        let count = Lock(0)
        return try MockServer { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let range = request.field("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
            let isFresh = request.field("If-Range") == tag(number)
            var response: MockResponse
            if let range, isFresh, honoursRanges {
                response = .bytes(Array(png.dropFirst(range)), status: 206)
                    .field("Content-Range", "bytes \(range)-\(png.count - 1)/\(png.count)")
            } else {
                response = .bytes(Array(png))
            }
            response = response.field("Content-Type", "image/png")
            if let tag = tag(number) { response = response.field("ETag", tag) }
            return request.path == "/cut" && number == 1
                ? response.fault(.close, at: .body(png.count / 2)) : response
        }
    }

    private func loader() -> ImageLoader {
        ImageLoader(session: Session { $0.retry = .never }, cache: nil)
    }

    @Test func failedTransferIsResumed() async throws {
        let png = try await ImageSamples.png(400, 300)
        let server = try cutting(png) { _ in "\"1\"" }
        let loader = loader()
        let error = await #expect(throws: NetworkError.self) { try await loader.image(Request(server.url("/cut"))) }
        #expect(error?.kind == .connectionLost)
        let loaded = try await loader.image(Request(server.url("/cut")))
        #expect(loaded.image.hasHalves && loaded.head?.status == .partialContent)
        let request = try #require(server.requests.last)
        #expect(request.field("Range") == "bytes=\(png.count / 2)-" && request.field("If-Range") == "\"1\"")
        // The part is used once.
        _ = try await loader.image(Request(server.url("/cut")))
        #expect(server.requests.last?.field("Range") == nil)
    }

    @Test func cancelledTransferIsResumed() async throws {
        let png = try await ImageSamples.png(400, 300)
        let gate = Gate()
        let server = try MockServer { request in
            let range = request.field("Range").flatMap { Int($0.dropFirst(6).dropLast()) }
            let response = MockResponse.bytes(Array(png.dropFirst(range ?? 0)), status: range == nil ? 200 : 206)
                .field("Content-Type", "image/png").field("ETag", "\"1\"")
            guard let range else { return response.fault(.stall(gate), at: .body(200)) }
            return response.field("Content-Range", "bytes \(range)-\(png.count - 1)/\(png.count)")
        }
        let loader = ImageLoader(session: Session(), cache: nil) { $0.previewInterval = .zero }
        let load = await loader.load(Request(server.url("/a")))
        // A preview shows that the first bytes have arrived.
        #expect(await load.previews.first { _ in true } != nil)
        load.cancel()
        while await loader.active > 0 { await Task.yield() }
        let loaded = try await loader.image(Request(server.url("/a")))
        #expect(loaded.image.hasHalves && loaded.head?.status == .partialContent)
        #expect(server.requests.last?.field("Range") == "bytes=200-")
        gate.open()
    }

    @Test func changedImageIsLoadedWhole() async throws {
        let png = try await ImageSamples.png(400, 300)
        for honours in [true, false] {
            let server = try cutting(png, tag: { $0 == 1 ? "\"1\"" : "\"2\"" }, honoursRanges: honours)
            let loader = loader()
            await #expect(throws: NetworkError.self) { try await loader.image(Request(server.url("/cut"))) }
            let loaded = try await loader.image(Request(server.url("/cut")))
            #expect(loaded.image.hasHalves && loaded.head?.status == .ok && server.requests.count == 2)
        }
    }

    /// A response that does not continue the part is replaced by one for the whole image.
    @Test(arguments: [
        (206, "bytes 0-9/20", "\"1\""), (206, "bytes 1-", "\"1\""), (206, "", "\"2\""), (416, "bytes */5", "\"1\""),
    ])
    func wrongPartIsReplaced(_ status: Int, _ contentRange: String, _ tag: String) async throws {
        let png = try await ImageSamples.png(400, 300)
        let wasCut = Lock(false)
        let server = try MockServer { request in
            if request.field("Range") != nil {
                return .bytes(Array(png.prefix(10)), status: status).field("Content-Type", "image/png")
                    .field("Content-Range", contentRange).field("ETag", tag)
            }
            let response = MockResponse.bytes(Array(png)).field("Content-Type", "image/png").field("ETag", "\"1\"")
            let isFirst = wasCut.withLock { wasCut in
                defer { wasCut = true }
                return !wasCut
            }
            return isFirst ? response.fault(.close, at: .body(png.count / 2)) : response
        }
        let loader = loader()
        await #expect(throws: NetworkError.self) { try await loader.image(Request(server.url("/a"))) }
        #expect(try await loader.image(Request(server.url("/a"))).image.hasHalves)
        #expect(server.requests.count == 3)
    }

    @Test func onlyPartsWithAStrongValidatorAreKept() async throws {
        let png = try await ImageSamples.png(400, 300)
        for (tag, limit) in [("W/\"1\"", ByteCount.mebibytes(1)), ("\"1\"", 0), ("\"1\"", 100)] {
            let server = try cutting(png) { _ in tag }
            let loader = ImageLoader(session: Session { $0.retry = .never }, cache: nil) { $0.resumableMemory = limit }
            await #expect(throws: NetworkError.self) { try await loader.image(Request(server.url("/cut"))) }
            _ = try await loader.image(Request(server.url("/cut")))
            #expect(server.requests.last?.field("Range") == nil)
        }
    }

    @Test func partsAreLimited() throws {
        let key = { (path: String) throws -> ImageLoader.SharedKey in
            let request = try #require(CoalescingKey(Request("http://a/\(path)"), interceptorsOf: nil))
            return ImageLoader.SharedKey(request: request, options: .init(), processor: nil)
        }
        let parts = PartialImages(limit: 100)
        func part(_ count: Int) -> PartialImages.Part {
            PartialImages.Part(bytes: Data(count: count), validator: .tag("\"1\""), total: 1000)
        }
        parts.keep(part(60), for: try key("a"))
        parts.keep(part(40), for: try key("b"))
        #expect(parts.bytes == 100)
        parts.keep(part(10), for: try key("c"))
        #expect(parts.bytes == 50)
        #expect(try parts.take(key("a")) == nil)
        #expect(try parts.take(key("b"))?.bytes.count == 40)
        #expect(try parts.take(key("b")) == nil && parts.bytes == 10)
        parts.keep(part(101), for: try key("d"))
        parts.keep(part(0), for: try key("e"))
        #expect(parts.bytes == 10)
    }
}
