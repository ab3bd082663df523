// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import Foundation
import Testing

@testable import CurlewImages

/// The loader: slots, sharing, cancellation, the cache, previews, local images.
@Suite(.timeLimit(.minutes(5)))
struct ImageLoaderTests {
    /// A server whose images wait for a gate before their last bytes.
    private struct Scene {
        let server: MockServer
        let gate = Gate()
        let loader: ImageLoader

        init(
            _ data: Data, cache: (any ImageCaching)? = ImageCache(pressure: nil),
            _ configure: @Sendable (inout ImageLoader.Configuration) -> Void = { _ in }
        ) throws {
            server = try MockServer { [gate] _ in
                MockResponse.bytes(Array(data)).field("Content-Type", "image/png")
                    .fault(.stall(gate), at: .body(data.count - 5))
            }
            loader = ImageLoader(session: Session(), cache: cache, configure)
        }

        func url(_ path: String) -> Request { Request(server.url(path)) }

        /// Waits until the loader has the given numbers of running and queued images.
        func wait(active: Int, queued: Int) async {
            while await loader.active != active { await Task.yield() }
            while await loader.queued != queued { await Task.yield() }
        }
    }

    private func scene(
        cache: (any ImageCaching)? = ImageCache(pressure: nil),
        _ configure: @Sendable (inout ImageLoader.Configuration) -> Void = { _ in }
    ) async throws -> Scene {
        try Scene(try await ImageSamples.png(40, 20), cache: cache, configure)
    }

    // MARK: Slots

    @Test func defaultsAreThoseOfAFNetworking() {
        let configuration = ImageLoader.Configuration()
        #expect(configuration.maximumActive == 4 && configuration.order == .fifo)
        #expect(configuration.previewInterval == .milliseconds(500) && !configuration.allowsLocalURLs)
        #expect(configuration.resumableMemory == .mebibytes(32))
        #expect(Session.Configuration().timeouts.idle == .seconds(60))
        #expect((ImageLoader.shared.cache as? ImageCache)?.capacity == .mebibytes(100))
    }

    @Test func fourImagesLoadAtTheSameTime() async throws {
        let scene = try await scene()
        var loads: [ImageLoader.Load] = []
        for number in 0..<6 { loads.append(await scene.loader.load(scene.url("/\(number)"))) }
        await scene.wait(active: 4, queued: 2)
        await scene.gate.waitUntilReached(times: 4)
        #expect(Set(scene.server.requests.map(\.path)) == ["/0", "/1", "/2", "/3"])
        scene.gate.open()
        for load in loads {
            let loaded = try await load.value
            #expect(loaded.image.hasHalves && loaded.source == .network && loaded.head?.status == .ok)
            #expect(load.isFinished)
        }
        #expect(scene.server.requests.count == 6 && Set(loads.map(\.id)).count == 6)
        await scene.wait(active: 0, queued: 0)
    }

    @Test(arguments: [ImageLoader.Order.fifo, .lifo])
    func orderAndPriorityDecide(_ order: ImageLoader.Order) async throws {
        let scene = try await scene { configuration in
            configuration.maximumActive = 1
            configuration.order = order
        }
        var loads = [await scene.loader.load(scene.url("/first"))]
        await scene.gate.waitUntilReached()
        for name in ["a", "b", "c"] { loads.append(await scene.loader.load(scene.url("/\(name)"))) }
        loads.append(await scene.loader.load(scene.url("/low"), priority: .low))
        loads.append(await scene.loader.load(scene.url("/high"), priority: .high))
        let raised = await scene.loader.load(scene.url("/raised"), priority: .low)
        await raised.changePriority(to: .high)
        loads.append(raised)
        scene.gate.open()
        for load in loads { _ = try await load.value }
        let paths = scene.server.requests.map(\.path)
        #expect(
            paths == ["/first"]
                + (order == .fifo
                    ? ["/high", "/raised", "/a", "/b", "/c", "/low"] : ["/raised", "/high", "/c", "/b", "/a", "/low"]))
    }

    // MARK: Sharing

    @Test func equalRequestsShareATransfer() async throws {
        let scene = try await scene()
        var loads: [ImageLoader.Load] = []
        for _ in 0..<3 { loads.append(await scene.loader.load(scene.url("/a"))) }
        // Requests that differ in a field, in the decoding or in the processor are not equal (IM-17).
        var other = scene.url("/a")
        other.fields[.acceptLanguage] = "de"
        loads.append(await scene.loader.load(other))
        loads.append(await scene.loader.load(scene.url("/a"), options: .fitting(width: 10, height: 10)))
        loads.append(await scene.loader.load(scene.url("/a"), processor: .init("same") { $0 }))
        await scene.gate.waitUntilReached(times: 4)
        scene.gate.open()
        var widths: [Int] = []
        for load in loads { widths.append(try await load.value.image.width) }
        #expect(widths == [40, 40, 40, 40, 10, 40] && scene.server.requests.count == 4)
    }

    @Test func cancelledRequestLeavesTheOthers() async throws {
        let scene = try await scene()
        let (first, second) = (await scene.loader.load(scene.url("/a")), await scene.loader.load(scene.url("/a")))
        await scene.gate.waitUntilReached()
        first.cancel()
        let error = await #expect(throws: NetworkError.self) { try await first.value }
        #expect(error?.isCancellation == true && first.isFinished)
        scene.gate.open()
        #expect(try await second.value.image.hasHalves && scene.server.requests.count == 1)
        first.cancel()
    }

    @Test func lastCancellationEndsTheTransfer() async throws {
        let scene = try await scene()
        let first = await scene.loader.load(scene.url("/a"))
        let task = Task { try await scene.loader.image(scene.url("/a")) }
        await scene.gate.waitUntilReached()
        first.cancel()
        task.cancel()
        let error = await #expect(throws: NetworkError.self) { try await task.value }
        #expect(error?.isCancellation == true)
        await scene.server.waitUntil(openConnections: 0)
        await scene.wait(active: 0, queued: 0)
        // A new request starts a new transfer.
        scene.gate.open()
        #expect(try await scene.loader.image(scene.url("/a")).image.hasHalves)
    }

    @Test func releasedRequestIsCancelled() async throws {
        let scene = try await scene()
        _ = await scene.loader.load(scene.url("/a"))
        await scene.server.waitUntil(openConnections: 0)
        await scene.wait(active: 0, queued: 0)
    }

    /// IM-16: a cancelled request in the queue frees no slot.
    @Test func cancelledQueuedRequestFreesNoSlot() async throws {
        let scene = try await scene { $0.maximumActive = 1 }
        let running = await scene.loader.load(scene.url("/a"))
        let queued = await scene.loader.load(scene.url("/b"))
        let next = await scene.loader.load(scene.url("/c"))
        await scene.gate.waitUntilReached()
        queued.cancel()
        await scene.wait(active: 1, queued: 1)
        #expect(scene.server.requests.map(\.path) == ["/a"])
        scene.gate.open()
        #expect(try await running.value.image.hasHalves)
        #expect(try await next.value.image.hasHalves)
        #expect(scene.server.requests.map(\.path) == ["/a", "/c"])
    }

    @Test func interceptorsThatCannotBeComparedAreNotShared() async throws {
        struct Anonymous: Interceptor {
            let closure: @Sendable () -> Void
            func intercept(
                _ request: Request, context: Interception.Context, next: Interception.Next
            ) async throws -> IncomingResponse { try await next(request) }
        }
        let scene = try await scene()
        var request = scene.url("/a")
        request.interceptors = [Anonymous {}]
        let (first, second) = (await scene.loader.load(request), await scene.loader.load(request))
        scene.gate.open()
        #expect(try await first.value.image.width == 40)
        #expect(try await second.value.image.width == 40)
        #expect(scene.server.requests.count == 2)
        #expect((scene.loader.cache as? ImageCache)?.count == 0, "no other request could find the images")
    }

    // MARK: Cache

    @Test func imageComesFromTheCacheWithoutAResponse() async throws {
        let scene = try await scene()
        scene.gate.open()
        #expect(try await scene.loader.image(scene.url("/a")).source == .network)
        let load = await scene.loader.load(scene.url("/a"))
        #expect(load.isFinished)
        let again = try await load.value
        #expect(again.source == .memory && again.head == nil && again.image.hasHalves)
        #expect(scene.server.requests.count == 1)
        let small = try await scene.loader.image(scene.url("/a"), options: .fitting(width: 4, height: 4))
        #expect(small.source == .network && small.image.width == 4)
        let key = ImageCache.Key(scene.url("/a"))
        #expect(scene.loader.cache?.remove(key) == true)
        #expect(try await scene.loader.image(scene.url("/a")).source == .network)
    }

    /// IM-05: only three policies ask the cache.
    @Test(arguments: Request.CachePolicy.allCases)
    func policyDecidesAboutTheCache(_ policy: Request.CachePolicy) async throws {
        let scene = try await scene()
        scene.gate.open()
        _ = try await scene.loader.image(scene.url("/a"))
        var request = scene.url("/a")
        request.options.cache = policy
        let source = try await scene.loader.image(request).source
        let asks = [.standard, .preferCache, .onlyIfCached].contains(policy)
        #expect(source == (asks ? .memory : .network))
    }

    @Test func otherMethodsAndRefusedImagesAreNotCached() async throws {
        let cache = ImageCache(pressure: nil)
        let scene = try await scene(cache: cache) { $0.shouldCache = { _, request in !request.url.hasSuffix("/no") } }
        scene.gate.open()
        _ = try await scene.loader.image(scene.url("/no"))
        _ = try await scene.loader.image(Request(.post, scene.server.url("/post")))
        #expect(cache.count == 0)
        _ = try await scene.loader.image(scene.url("/yes"))
        #expect(cache.count == 1)
        let none = try await self.scene(cache: nil)
        none.gate.open()
        for _ in 0..<2 { #expect(try await none.loader.image(none.url("/a")).source == .network) }
    }

    @Test func otherCachesAreAsked() async throws {
        final class Recorder: ImageCaching {
            let images = Lock<[ImageCache.Key: DecodedImage]>([:])
            func image(for key: ImageCache.Key) -> DecodedImage? { images.withLock { $0[key] } }
            func add(_ image: DecodedImage, for key: ImageCache.Key) -> Bool {
                images.withLock { $0[key] = image }
                return true
            }
            func remove(_ key: ImageCache.Key) -> Bool { images.withLock { $0.removeValue(forKey: key) } != nil }
            func removeAll() -> Bool { false }
        }
        let recorder = Recorder()
        let scene = try await scene(cache: recorder)
        scene.gate.open()
        _ = try await scene.loader.image(scene.url("/a"))
        #expect(recorder.images.withLock { Array($0.keys) } == [ImageCache.Key(scene.url("/a"))])
        #expect(try await scene.loader.image(scene.url("/a")).source == .memory)
    }

    /// The authenticator of a client is an interceptor of its requests.
    @Test func usersWithOtherCredentialsShareNoImage() async throws {
        let scene = try await scene()
        scene.gate.open()
        var sources: [ImageLoader.Loaded.Source] = []
        for token in ["anna", "bob", "anna"] {
            var api = try Client(BaseURL(scene.server.url("/")))
            api.auth = .bearer(token)
            sources.append(try await scene.loader.image(try api.request(for: Call(.get, "a"))).source)
        }
        #expect(sources == [.network, .network, .memory])
        #expect(scene.server.requests.map { $0.field("Authorization") ?? "" } == ["Bearer anna", "Bearer bob"])
    }

    @Test func storedResponseComesFromTheHTTPCache() async throws {
        let png = try await ImageSamples.png(40, 20)
        let server = try MockServer { _ in
            .bytes(Array(png)).field("Content-Type", "image/png").field("Cache-Control", "max-age=60")
        }
        let loader = ImageLoader(session: Session(cache: HTTPCache()), cache: nil)
        #expect(try await loader.image(Request(server.url("/a"))).source == .network)
        let again = try await loader.image(Request(server.url("/a")))
        #expect(again.source == .cache && again.head?.cache?.isHit == true && server.requests.count == 1)
    }

    // MARK: Errors

    @Test func errorsReachEveryRequest() async throws {
        let server = try MockServer { _ in .status(404) }
        let loader = ImageLoader(session: Session())
        let (first, second) = (
            await loader.load(Request(server.url("/a"))), await loader.load(Request(server.url("/a")))
        )
        for load in [first, second] {
            let error = await #expect(throws: NetworkError.self) { try await load.value }
            #expect(error?.kind == .unacceptableStatus)
        }
        #expect(server.requests.count == 1)
        // IM-08: an invalid URL is an error.
        for url in ["", "nonsense", "file:///etc/passwd", "data:image/png;base64,AA=="] {
            let error = await #expect(throws: NetworkError.self) { try await loader.image(Request(url)) }
            #expect(error?.kind == .invalidRequest, "\(url)")
        }
    }

    @Test func processorChangesTheImage() async throws {
        struct Failure: Error {}
        let scene = try await scene()
        scene.gate.open()
        let small = ImageLoader.Processor("small") { try await $0.scaled(toFit: 8, 8) }
        #expect(try await scene.loader.image(scene.url("/a"), processor: small).image.width == 8)
        #expect(try await scene.loader.image(scene.url("/a"), processor: small).source == .memory)
        #expect(try await scene.loader.image(scene.url("/a")).source == .network, "it has an entry of its own")
        let error = await #expect(throws: NetworkError.self) {
            try await scene.loader.image(scene.url("/a"), processor: .init("broken") { _ in throw Failure() })
        }
        #expect(error?.kind == .decodingFailed && error?.cause is Failure)
        let image = await #expect(throws: NetworkError.self) {
            try await scene.loader.image(
                scene.url("/a"), processor: .init("limit") { _ in throw ImageError(.tooLarge, "It is too large.") })
        }
        #expect((image?.cause as? ImageError)?.kind == .tooLarge && image?.request != nil)
    }

    // MARK: Previews

    @Test func previewsShowTheArrivedPart() async throws {
        let (width, height) = (200, 400)
        var chance = SplitMix(7)
        let noise = (0..<(width * height * 3)).map { _ in UInt8.random(in: 1...255, using: &chance) }
        let png = try await DecodedImage(pixels: noise, width: width, height: height).encoded(as: .png)
        let (half, end) = (Gate(), Gate())
        let server = try MockServer { _ in
            MockResponse.bytes(Array(png)).field("Content-Type", "image/png").fault(.stall(half), at: .body(100))
                .fault(.stall(end), at: .body(png.count / 2))
        }
        let loader = ImageLoader(session: Session()) { $0.previewInterval = .zero }
        let load = await loader.load(Request(server.url("/a")))
        var previews = load.previews.makeAsyncIterator()
        half.open()
        await end.waitUntilReached()
        // Earlier previews may lack the rows at the top.
        var preview = try #require(await previews.next())
        while preview[10, 10].red != noise[(10 * width + 10) * 3] { preview = try #require(await previews.next()) }
        #expect(preview.width == width && preview.height == height && preview.header?.format == .png)
        #expect(preview[10, height - 1].red != noise[((height - 1) * width + 10) * 3], "the bottom has not")
        end.open()
        while await previews.next() != nil {}
        #expect(Array(try await load.value.image.frames[0].bytes) == noise)
        #expect(await load.previews.first { _ in true } == nil, "the request has ended")
    }

    // MARK: Local images

    @Test func localURLsAreLoadedOnlyIfAllowed() async throws {
        let png = try await ImageSamples.png(8, 8)
        let folder = FileManager.default.temporaryDirectory.appending(path: "curlew images \(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "ä.png")
        try png.write(to: file)
        let loader = ImageLoader(session: Session()) { $0.allowsLocalURLs = true }
        for url in ["data:image/png;base64,\(png.base64EncodedString())", file.absoluteString] {
            let loaded = try await loader.image(Request(url))
            #expect(loaded.image.hasHalves && loaded.source == .local && loaded.head == nil)
            await #expect(throws: NetworkError.self) { try await ImageLoader(session: Session()).image(Request(url)) }
        }
        let missing = await #expect(throws: NetworkError.self) { try await loader.image("file:///nowhere.png") }
        #expect((missing?.cause as? ImageError)?.kind == .unreadable)
    }

    @Test func localURLsAreRead() throws {
        let urls: [(String, LocalImage?)] = [
            ("data:,a%20b", .data(Data("a b".utf8))), ("data:text/plain;charset=x,%FF", .data(Data([0xFF]))),
            ("DATA:image/png; BASE64,QU JD", .data(Data("ABC".utf8))), ("data:;base64,QUJ%44", .data(Data("ABC".utf8))),
            ("file:///a%20b/c?x#y", .file("/a b/c")), ("file://localhost/a", .file("/a")), ("file:/a", .file("/a")),
            ("http://a/", nil), ("nothing", nil),
        ]
        for (url, expected) in urls { #expect(try LocalImage(Request(url), isAllowed: true) == expected, "\(url)") }
        let invalid = [
            "data:image/png;base64", "data:,%4", "data:,%zz", "data:;base64,?", "file://host/a", "file://", "file:a",
            "file:///a%00b", "file:///%FF",
        ]
        for url in invalid {
            let error = #expect(throws: NetworkError.self) { try LocalImage(Request(url), isAllowed: true) }
            #expect(error?.kind == .invalidRequest && error?.hint != nil, "\(url)")
        }
        let refused = #expect(throws: NetworkError.self) { try LocalImage("file:///a", isAllowed: false) }
        #expect(refused?.hint == "Set allowsLocalURLs if the URLs are trusted.")
    }

    // MARK: Prefetch

    @Test func prefetchedImagesAreCachedAndShared() async throws {
        let scene = try await scene { $0.maximumActive = 1 }
        let prefetch = await scene.loader.prefetch((0..<3).map { scene.url("/\($0)") })
        await scene.gate.waitUntilReached()
        let wanted = await scene.loader.load(scene.url("/2"))
        scene.gate.open()
        #expect(try await wanted.value.image.hasHalves)
        #expect(await prefetch.loaded() == 3)
        #expect(scene.server.requests.map(\.path) == ["/0", "/2", "/1"], "the wanted image has overtaken")
        #expect(await scene.loader.load(scene.url("/1")).isFinished)
        let failing = await scene.loader.prefetch([scene.url("/0"), Request("nonsense")])
        #expect(await failing.loaded() == 1)
    }

    @Test func cancelledPrefetchEnds() async throws {
        let scene = try await scene()
        let prefetch = await scene.loader.prefetch((0..<3).map { scene.url("/\($0)") })
        await scene.gate.waitUntilReached()
        prefetch.cancel()
        #expect(await prefetch.loaded() == 0)
        await scene.wait(active: 0, queued: 0)
        _ = await scene.loader.prefetch([scene.url("/9")])
        await scene.wait(active: 0, queued: 0)
    }

    // MARK: Many requests

    /// Thousands of requests for a few images, of which a random half is cancelled: each ends exactly once, and the
    /// others get their image.
    @Test(arguments: [1, 2])
    func mergedAndCancelledRequestsAllEnd(_ seed: UInt64) async throws {
        let png = try await ImageSamples.png(16, 16)
        let server = try MockServer { _ in .bytes(Array(png)).field("Content-Type", "image/png") }
        let loader = ImageLoader(session: Session(), cache: nil) { $0.order = seed % 2 == 0 ? .lifo : .fifo }
        var chance = SplitMix(seed)
        var loads: [(load: ImageLoader.Load, isCancelled: Bool)] = []
        for _ in 0..<5_000 {
            let url = server.url("/\(Int.random(in: 0..<50, using: &chance))")
            let load = await loader.load(Request(url), priority: [.low, .normal, .high].randomElement(using: &chance))
            let isCancelled = Bool.random(using: &chance)
            loads.append((load, isCancelled))
            if isCancelled, Bool.random(using: &chance) { load.cancel() }
            if Int.random(in: 0..<20, using: &chance) == 0 {
                let earlier = loads[Int.random(in: 0..<loads.count, using: &chance)]
                if earlier.isCancelled { earlier.load.cancel() }
            }
        }
        for (load, isCancelled) in loads {
            if isCancelled { load.cancel() }
            do throws(NetworkError) {
                #expect(try await load.value.image.width == 16)
            } catch {
                #expect(isCancelled && error.isCancellation, "\(error)")
            }
        }
        while await loader.active + loader.queued > 0 { await Task.yield() }
        #expect(server.requests.count < 5_000)
    }
}
