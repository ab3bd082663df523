// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewShims
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

/// The API that reads a body.
enum BodyAPI: CaseIterable, Sendable { case data, stream, download }

/// A way for a server to cut a body without a declared length after its first bytes.
struct HTTP2Truncation: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Whether the cut ends the connection with all its streams.
    var endsConnection = true
    /// Returns the server's script for the number of the stream.
    let script: @Sendable (Int) -> HTTP2Script

    private static func frame(_ text: String, _ frame: @escaping @Sendable (Int) -> HTTP2Frame) -> HTTP2Truncation {
        HTTP2Truncation(testDescription: text) { .now.frame(frame($0)) }
    }

    /// Returns a DATA frame with END_STREAM, without its last four bytes.
    private static func unfinished(_ stream: Int) -> [UInt8] {
        Array(HTTP2Frame.data(stream, Array("0123456789".utf8), endStream: true).encoded.dropLast(4))
    }

    private static func claiming(_ length: Int, _ stream: Int) -> HTTP2Frame {
        var frame = HTTP2Frame.data(stream, [1, 2, 3], endStream: true)
        frame.declaredLength = length
        return frame
    }

    /// Cuts that end the connection.
    static let ends: [HTTP2Truncation] = [
        HTTP2Truncation(testDescription: "close") { _ in .now.fault(.close) },
        HTTP2Truncation(testDescription: "close without close_notify") { _ in .now.fault(.cut) },
        HTTP2Truncation(testDescription: "TCP reset") { _ in .now.fault(.reset) },
        HTTP2Truncation(testDescription: "close inside DATA") { .now.fault(.send(unfinished($0))).fault(.close) },
        HTTP2Truncation(testDescription: "TCP reset inside DATA") { .now.fault(.send(unfinished($0))).fault(.reset) },
        HTTP2Truncation(testDescription: "GOAWAY and close") { _ in .now.goAway().fault(.close) },
        HTTP2Truncation(testDescription: "RST_STREAM(CANCEL) and close") { _ in .now.reset(.cancel).fault(.close) },
        HTTP2Truncation(testDescription: "RST_STREAM(NO_ERROR) and close") { _ in .now.reset(.noError).fault(.close) },
    ]

    /// Cuts by a violation of the protocol (RFC 9113 §4.2 and §6).
    static let breaches: [HTTP2Truncation] = [
        .frame("padding that does not fit") { HTTP2Frame(.data, flags: .padded, stream: $0, payload: [200, 1]) },
        .frame("DATA on stream 0") { _ in .data(0, [1]) },
        .frame("DATA on an idle stream") { .data($0 + 100, [1]) },
        .frame("RST_STREAM on stream 0") { _ in .rstStream(0, .noError) },
        .frame("RST_STREAM on an idle stream") { .rstStream($0 + 100, .noError) },
        .frame("RST_STREAM of three bytes") { HTTP2Frame(.rstStream, stream: $0, payload: [0, 0, 0]) },
        .frame("CONTINUATION after END_HEADERS") { .continuation($0) },
        .frame("a frame above the limit") { .data($0, [UInt8](repeating: 1, count: 16_385)) },
        .frame("a frame that claims more than the limit") { claiming(20_000, $0) },
    ]

    /// Cuts that end only the stream.
    static let resets: [HTTP2Truncation] = [
        HTTP2Truncation(testDescription: "RST_STREAM(NO_ERROR)", endsConnection: false) { _ in .now.reset(.noError) },
        HTTP2Truncation(testDescription: "RST_STREAM(CANCEL)", endsConnection: false) { _ in .now.reset(.cancel) },
    ]

    static let all = ends + breaches + resets
}

/// A way to end a response with END_STREAM, and the frames that follow at once.
struct HTTP2Ending: Sendable, CustomTestStringConvertible {
    let testDescription: String
    var head: HTTP2Script = .now.head(200).body("abc")
    let end: HTTP2Script

    var isEmpty: Bool { testDescription.hasPrefix("HEADERS") }
    var body: String { isEmpty ? "" : "abc" }

    static let all: [HTTP2Ending] = [
        HTTP2Ending(testDescription: "DATA", end: .now.body("", endStream: true)),
        HTTP2Ending(testDescription: "the same DATA", head: .now, end: .now.head(200).body("abc", endStream: true)),
        HTTP2Ending(testDescription: "trailers", end: .now.trailers([("x-sum", "1")])),
        HTTP2Ending(testDescription: "HEADERS", head: .now, end: .now.head(200, endStream: true)),
        HTTP2Ending(testDescription: "RST_STREAM(NO_ERROR) after DATA", end: .now.end().reset(.noError)),
        HTTP2Ending(testDescription: "RST_STREAM(CANCEL) after trailers", end: .now.trailers([]).reset(.cancel)),
        HTTP2Ending(testDescription: "close after DATA", end: .now.end().fault(.close)),
        HTTP2Ending(testDescription: "GOAWAY and close after DATA", end: .now.end().goAway().fault(.close)),
        HTTP2Ending(
            testDescription: "HEADERS, GOAWAY and close", head: .now,
            end: .now.head(200, endStream: true).goAway().fault(.close)),
    ]
}

/// Reads bodies with every API and returns the results.
struct BodyCollector: Sendable {
    let scene: HTTP2Scene
    let folder: Folder
    /// For each number of a path, the function that waits for the first bytes of its transfer.
    private let starts = Lock<[UInt8: @Sendable () async -> Void]>([:])

    init(_ scene: HTTP2Scene) throws {
        self.scene = scene
        folder = try Folder()
    }

    /// Starts a transfer and returns a task with its body or error.
    func take(_ taking: BodyAPI, _ path: String) -> Task<Result<String, any Error>, Never> {
        var request = scene.request(path)
        // Downloads would resume automatically.
        request.options.retry = RetryPolicy.never
        switch taking {
        case .data:
            let transfer = scene.session.transfer(request)
            record(transfer, path)
            return Task { await BodyCollector.result { try await transfer.value } }
        case .stream:
            let transfer = scene.session.transfer(request)
            record(transfer, path)
            return Task {
                await BodyCollector.result {
                    var body = Data()
                    for try await chunk in transfer.bytes { body.append(contentsOf: chunk) }
                    return body
                }
            }
        case .download:
            let name = path.filter { $0 != "/" } + "-"
            let transfer = scene.session.downloadTransfer(request, to: .file(folder(name)))
            record(transfer, path)
            return Task { [folder] in
                await BodyCollector.result {
                    _ = try await transfer.value
                    // Foundation's Data(contentsOf:) leaks for an empty file.
                    return Data(try #require(folder.bytes(name)))
                }
            }
        }
    }

    private func record(_ transfer: Transfer<some Sendable>, _ path: String) {
        starts.withLock {
            $0[Self.number(path)] = {
                for await progress in transfer.progress where progress.received > 0 { break }
            }
        }
    }

    private static func number(_ path: String) -> UInt8 { UInt8(path.dropFirst()) ?? 0 }

    private static func result(_ take: () async throws -> Data) async -> Result<String, any Error> {
        do {
            return .success(String(decoding: try await take(), as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    /// Returns the start of a response and a PING, whose acknowledgement shows that the client has read the start.
    static func start(_ request: RecordedRequest, _ status: Int = 200) -> HTTP2Script {
        .now.head(status).body("abc").frame(.ping([UInt8](repeating: number(request.path), count: 8)))
    }

    /// Waits until the client has read the start of the response to "/number", and its transfer has received the bytes.
    ///
    /// A client that has acknowledged the PING may still keep the start of the stream in buffers of libcurl, which
    /// drops them when the stream is reset.
    func waitForStart(_ number: UInt8) async {
        _ = await scene.server.waitForFrame {
            $0.frame.kind == .ping && $0.frame.flags.contains(.ack) && $0.frame.payload.first == number
        }
        await starts.withLock { $0[number] }?()
    }

    /// Expects that the transfer has failed after its head, because the rest of the body is missing.
    func expectCut(
        _ result: Result<String, any Error>, _ text: String, _ location: SourceLocation = #_sourceLocation
    ) {
        guard case .failure(let error as NetworkError) = result else {
            Issue.record("\(text): \(result)", sourceLocation: location)
            return
        }
        // Newer versions of libcurl report protocol violations more often.
        let kinds: [NetworkError.Kind] = [.connectionLost, .invalidResponse]
        #expect(
            kinds.contains(error.kind) && error.response?.status == .ok, "\(text): \(error)", sourceLocation: location)
        #expect(error.phase == .receiving, "\(text): \(error)", sourceLocation: location)
    }
}

/// A truncated body without a declared length never passes for complete: only END_STREAM ends it (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(10)))
struct HTTP2TruncationTests {
    private func scene(
        isSecure: Bool = true, _ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script
    ) throws -> HTTP2Scene {
        try HTTP2Scene(isSecure: isSecure, respond)
    }

    @Test(arguments: HTTP2Truncation.all, BodyAPI.allCases) func truncatedBodyAloneOnConnectionFails(
        _ cut: HTTP2Truncation, _ taking: BodyAPI
    ) async throws {
        for isSecure in [true, false] {
            let gate = Gate()
            let taker = try BodyCollector(
                scene(isSecure: isSecure) {
                    BodyCollector.start($0).fault(.stall(gate)).then(cut.script($0.stream))
                })
            let result = taker.take(taking, "/0")
            await taker.waitForStart(0)
            gate.open()
            taker.expectCut(await result.value, "alone, \(isSecure)")
        }
    }

    /// The cut arrives together with the start of the body.
    @Test(arguments: HTTP2Truncation.breaches + HTTP2Truncation.resets, BodyAPI.allCases)
    func bodyTruncatedTogetherWithItsStartFails(_ cut: HTTP2Truncation, _ taking: BodyAPI) async throws {
        for isSecure in [true, false] {
            let taker = try BodyCollector(
                scene(isSecure: isSecure) { .now.head(200).body("abc").then(cut.script($0.stream)) })
            let result = await taker.take(taking, "/").value
            // Frames that arrive together with a reset may be dropped, including the head.
            if case .failure(let error as NetworkError) = result, error.response == nil {
                #expect(error.kind == .connectionLost || error.kind == .invalidResponse, "\(error)")
            } else {
                taker.expectCut(result, "at once, \(isSecure)")
            }
        }
    }

    /// Nine other transfers share the connection in the middle of their bodies.
    ///
    /// A cut that ends the connection fails all of them; a cut that ends only one stream fails only its own transfer.
    @Test(arguments: HTTP2Truncation.all, BodyAPI.allCases)
    func truncatedBodyAmongOtherStreamsFails(_ cut: HTTP2Truncation, _ taking: BodyAPI) async throws {
        let (gate, rest) = (Gate(), Gate())
        let taker = try BodyCollector(
            scene { request in
                let start = BodyCollector.start(request)
                guard request.path == "/9" else { return start.fault(.stall(rest)).body("def", endStream: true) }
                return start.fault(.stall(gate)).then(cut.script(request.stream))
            })
        let others = (0..<9).map { taker.take(BodyAPI.allCases[$0 % 3], "/\($0)") }
        for number in 0..<9 { await taker.waitForStart(UInt8(number)) }
        let result = taker.take(taking, "/9")
        await taker.waitForStart(9)
        #expect(taker.scene.server.connectionCount == 1)
        gate.open()
        taker.expectCut(await result.value, "cut")
        if !cut.endsConnection { rest.open() }
        for other in others {
            let result = await other.value
            if cut.endsConnection {
                taker.expectCut(result, "neighbour")
            } else {
                #expect(try result.get() == "abcdef")
            }
        }
    }

    /// Every other one of ten responses is complete when the connection ends, and all frames arrive together.
    @Test(arguments: [HTTP2Script.now.fault(.close), .now.goAway().fault(.close), .now.frame(.data(0, [1]))])
    func onlyTruncatedBodiesFailWhenConnectionEnds(_ end: HTTP2Script) async throws {
        let gate = Gate()
        let taker = try BodyCollector(
            scene { request in
                let start = BodyCollector.start(request)
                guard request.path == "/9" else { return start }
                let ends = stride(from: 1, to: 19, by: 4).reduce(start.fault(.stall(gate))) {
                    $0.frame(.data($1, Array("def".utf8), endStream: true))
                }
                return ends.then(end)
            })
        var results: [Task<Result<String, any Error>, Never>] = []
        for number in 0..<10 {
            results.append(taker.take(BodyAPI.allCases[number % 3], "/\(number)"))
            await taker.waitForStart(UInt8(number))
        }
        gate.open()
        for (number, result) in results.enumerated() {
            let result = await result.value
            if number.isMultiple(of: 2) {
                #expect((try? result.get()) == "abcdef", "\(number): \(result)")
            } else {
                taker.expectCut(result, "\(number)")
            }
        }
    }

    /// The response arrives before the end of the upload, and the server stops reading the upload.
    @Test(arguments: [200, 413], [true, false]) func earlyResponseIsReturnedOnlyIfComplete(
        _ status: Int, _ isWhole: Bool
    ) async throws {
        let gate = Gate()
        let scene = try scene { request in
            let start = HTTP2Script.now.withholdingWindow().reading(bytes: 65_535).then(
                BodyCollector.start(request, status))
            return (isWhole ? start.end() : start).fault(.stall(gate)).reset(.noError)
        }
        let transfer = scene.session.transfer(scene.post(.bytes(PatternBody(seed: 1, length: 3 << 20).bytes)))
        let taker = try BodyCollector(scene)
        transfer.start()
        await taker.waitForStart(0)
        gate.open()
        if isWhole {
            let response = try await transfer.response()
            #expect(response.value == Data("abc".utf8) && response.status.code == status)
        } else {
            let error = try await networkError { try await transfer.value }
            #expect([.connectionLost, .invalidResponse].contains(error.kind) && error.response?.status.code == status)
        }
    }

    @Test(arguments: HTTP2Ending.all, BodyAPI.allCases)
    func completeBodyIsReturned(_ ending: HTTP2Ending, _ taking: BodyAPI) async throws {
        for isSecure in [true, false] {
            let taker = try BodyCollector(scene(isSecure: isSecure) { _ in ending.head.then(ending.end) })
            for round in 0..<3 { #expect(try await taker.take(taking, "/\(round)").value.get() == ending.body) }
        }
    }

    /// Ten responses on one connection end together, immediately followed by the end of the connection if there is one.
    @Test(arguments: HTTP2Ending.all) func completeBodiesOfOneConnectionAreReturned(_ ending: HTTP2Ending) async throws
    {
        let gate = Gate()
        let ids = stride(from: 1, to: 19, by: 2)
        let taker = try BodyCollector(
            scene { request in
                let start = BodyCollector.start(request)
                guard request.path == "/9" else { return start }
                let ends = ids.reduce(HTTP2Script.now.fault(.stall(gate))) { $0.frame(.data($1, endStream: true)) }
                return ends.then(ending.head).then(ending.end)
            })
        var results: [Task<Result<String, any Error>, Never>] = []
        for number in 0..<9 {
            results.append(taker.take(BodyAPI.allCases[number % 3], "/\(number)"))
            await taker.waitForStart(UInt8(number))
        }
        let last = taker.take(.data, "/9")
        await gate.waitUntilReached()
        gate.open()
        for result in results { #expect(try await result.value.get() == "abc") }
        #expect(try await last.value.get() == ending.body)
        #expect(taker.scene.server.connectionCount == 1)
    }
}

/// Truncated bodies while HTTP/2 frames are not watched: the session sees only sockets, and fails uncertain bodies.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2UnwatchedTruncationTests {
    private func taker(_ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script) async throws -> BodyCollector {
        let scene = try HTTP2Scene(respond)
        await Task(executorPreference: scene.session.executor) { curlew_watch_streams(nil, nil) }.value
        return try BodyCollector(scene)
    }

    @Test(arguments: HTTP2Truncation.ends.prefix(6) + HTTP2Truncation.breaches)
    func truncatedBodyAloneOnConnectionFails(_ cut: HTTP2Truncation) async throws {
        let gate = Gate()
        let taker = try await taker { BodyCollector.start($0).fault(.stall(gate)).then(cut.script($0.stream)) }
        let result = taker.take(.data, "/0")
        await taker.waitForStart(0)
        gate.open()
        taker.expectCut(await result.value, "alone")
    }

    /// The last cut is excluded, because sockets do not show a stream that ends by RST_STREAM(NO_ERROR).
    @Test(arguments: HTTP2Truncation.ends.dropLast()) func truncatedBodyAmongOtherStreamsFails(_ cut: HTTP2Truncation)
        async throws
    {
        let gate = Gate()
        let taker = try await taker {
            let start = BodyCollector.start($0)
            return $0.path == "/9" ? start.fault(.stall(gate)).then(cut.script($0.stream)) : start
        }
        let results = (0..<10).map { taker.take(BodyAPI.allCases[$0 % 3], "/\($0)") }
        for number in 0..<10 { await taker.waitForStart(UInt8(number)) }
        gate.open()
        for result in results { taker.expectCut(await result.value, "among others") }
    }

    @Test(arguments: HTTP2Ending.all.prefix(7), BodyAPI.allCases)
    func completeBodyIsReturned(_ ending: HTTP2Ending, _ taking: BodyAPI) async throws {
        let taker = try await taker { _ in ending.head.then(ending.end) }
        for round in 0..<3 { #expect(try await taker.take(taking, "/\(round)").value.get() == ending.body) }
    }
}
