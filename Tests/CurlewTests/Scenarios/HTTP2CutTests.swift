// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewShims
import CurlewTesting
import FoundationEssentials
import Testing

/// How a caller takes a body.
enum BodyTaking: CaseIterable, Sendable { case data, stream, download }

/// A way for a server to end a body without a length before its end, after its first bytes.
struct HTTP2Cut: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Whether it ends the connection, and with it every stream on it.
    var endsConnection = true
    /// What the server does, by the number of the stream.
    let script: @Sendable (Int) -> HTTP2Script

    private static func frame(_ text: String, _ frame: @escaping @Sendable (Int) -> HTTP2Frame) -> HTTP2Cut {
        HTTP2Cut(testDescription: text) { .now.frame(frame($0)) }
    }

    /// A DATA frame that would end the stream, without its last bytes.
    private static func unfinished(_ stream: Int) -> [UInt8] {
        Array(HTTP2Frame.data(stream, Array("0123456789".utf8), endStream: true).encoded.dropLast(4))
    }

    private static func claiming(_ length: Int, _ stream: Int) -> HTTP2Frame {
        var frame = HTTP2Frame.data(stream, [1, 2, 3], endStream: true)
        frame.declaredLength = length
        return frame
    }

    /// The connection ends.
    static let ends: [HTTP2Cut] = [
        HTTP2Cut(testDescription: "close") { _ in .now.fault(.close) },
        HTTP2Cut(testDescription: "close without close_notify") { _ in .now.fault(.cut) },
        HTTP2Cut(testDescription: "TCP reset") { _ in .now.fault(.reset) },
        HTTP2Cut(testDescription: "close inside DATA") { .now.fault(.send(unfinished($0))).fault(.close) },
        HTTP2Cut(testDescription: "TCP reset inside DATA") { .now.fault(.send(unfinished($0))).fault(.reset) },
        HTTP2Cut(testDescription: "GOAWAY and close") { _ in .now.goAway().fault(.close) },
        HTTP2Cut(testDescription: "RST_STREAM(CANCEL) and close") { _ in .now.reset(.cancel).fault(.close) },
        HTTP2Cut(testDescription: "RST_STREAM(NO_ERROR) and close") { _ in .now.reset(.noError).fault(.close) },
    ]

    /// The server breaks the protocol (RFC 9113 §4.2 and §6).
    static let breaches: [HTTP2Cut] = [
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

    /// The stream alone ends.
    static let resets: [HTTP2Cut] = [
        HTTP2Cut(testDescription: "RST_STREAM(NO_ERROR)", endsConnection: false) { _ in .now.reset(.noError) },
        HTTP2Cut(testDescription: "RST_STREAM(CANCEL)", endsConnection: false) { _ in .now.reset(.cancel) },
    ]

    static let all = ends + breaches + resets
}

/// A way to end an answer with END_STREAM, and what may follow at once.
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

/// Takes bodies in every way, and tells how that ended.
struct BodyTaker: Sendable {
    let scene: HTTP2Scene
    let folder: Folder

    init(_ scene: HTTP2Scene) throws {
        self.scene = scene
        folder = try Folder()
    }

    /// Begins a transfer; its body comes, or why it does not.
    func take(_ taking: BodyTaking, _ path: String) -> Task<Result<String, any Error>, Never> {
        var request = scene.request(path)
        // Downloads would go on by themselves.
        request.options.retry = RetryPolicy.none
        switch taking {
        case .data:
            let transfer = scene.session.transfer(request)
            return Task { await BodyTaker.result { try await transfer.value } }
        case .stream:
            let transfer = scene.session.transfer(request)
            return Task {
                await BodyTaker.result {
                    var body = Data()
                    for try await chunk in transfer.bytes { body.append(contentsOf: chunk) }
                    return body
                }
            }
        case .download:
            let name = path.filter { $0 != "/" } + "-"
            let transfer = scene.session.transfer(request, to: .file(folder(name)))
            return Task { [folder] in
                await BodyTaker.result {
                    _ = try await transfer.value
                    // Foundation's Data(contentsOf:) leaks for an empty file.
                    return Data(try #require(folder.bytes(name)))
                }
            }
        }
    }

    private static func result(_ take: () async throws -> Data) async -> Result<String, any Error> {
        do {
            return .success(String(decoding: try await take(), as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    /// The start of an answer and a PING, whose answer tells that the client has read the start.
    static func start(_ request: RecordedRequest, _ status: Int = 200) -> HTTP2Script {
        let number = UInt8(request.path.dropFirst()) ?? 0
        return .now.head(status).body("abc").frame(.ping([UInt8](repeating: number, count: 8)))
    }

    /// Waits until the client has read the start of the answer to "/number".
    func waitForStart(_ number: UInt8) async {
        _ = await scene.server.waitForFrame {
            $0.frame.kind == .ping && $0.frame.flags.contains(.ack) && $0.frame.payload.first == number
        }
    }

    /// The transfer has failed for want of the rest, after a head.
    func expectCut(
        _ result: Result<String, any Error>, _ text: String, _ location: SourceLocation = #_sourceLocation
    ) {
        guard case .failure(let error as NetworkError) = result else {
            Issue.record("\(text): \(result)", sourceLocation: location)
            return
        }
        // libcurl's newer versions say more often that the server broke the rules.
        let kinds: [NetworkError.Kind] = [.connectionLost, .invalidResponse]
        #expect(
            kinds.contains(error.kind) && error.response?.status == .ok, "\(text): \(error)", sourceLocation: location)
        #expect(error.phase == .receiving, "\(text): \(error)", sourceLocation: location)
    }
}

/// A body without a length that is cut short never passes for whole, since only END_STREAM ends it (RFC 9113 §8.1).
@Suite(.timeLimit(.minutes(10)))
struct HTTP2CutTests {
    private func scene(
        isSecure: Bool = true, _ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script
    ) throws -> HTTP2Scene {
        try HTTP2Scene(isSecure: isSecure, respond)
    }

    @Test(arguments: HTTP2Cut.all, BodyTaking.allCases) func alone(_ cut: HTTP2Cut, _ taking: BodyTaking) async throws {
        for isSecure in [true, false] {
            let gate = Gate()
            let taker = try BodyTaker(
                scene(isSecure: isSecure) {
                    BodyTaker.start($0).fault(.stall(gate)).then(cut.script($0.stream))
                })
            let result = taker.take(taking, "/0")
            await taker.waitForStart(0)
            gate.open()
            taker.expectCut(await result.value, "alone, \(isSecure)")
        }
    }

    /// What ends the body comes in one piece with its start.
    @Test(arguments: HTTP2Cut.breaches + HTTP2Cut.resets, BodyTaking.allCases)
    func aloneAndAtOnce(_ cut: HTTP2Cut, _ taking: BodyTaking) async throws {
        for isSecure in [true, false] {
            let taker = try BodyTaker(
                scene(isSecure: isSecure) { .now.head(200).body("abc").then(cut.script($0.stream)) })
            let result = await taker.take(taking, "/").value
            // What comes in one piece with a reset may be dropped, the head too.
            if case .failure(let error as NetworkError) = result, error.response == nil {
                #expect(error.kind == .connectionLost || error.kind == .invalidResponse, "\(error)")
            } else {
                taker.expectCut(result, "at once, \(isSecure)")
            }
        }
    }

    /// Nine transfers in the midst of their bodies share the connection: none of them passes for whole either, and what
    /// ends one stream alone does not end the others.
    @Test(arguments: HTTP2Cut.all, BodyTaking.allCases)
    func amongOthers(_ cut: HTTP2Cut, _ taking: BodyTaking) async throws {
        let (gate, rest) = (Gate(), Gate())
        let taker = try BodyTaker(
            scene { request in
                let start = BodyTaker.start(request)
                guard request.path == "/9" else { return start.fault(.stall(rest)).body("def", endStream: true) }
                return start.fault(.stall(gate)).then(cut.script(request.stream))
            })
        let others = (0..<9).map { taker.take(BodyTaking.allCases[$0 % 3], "/\($0)") }
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

    /// Of ten answers every other one is whole when the connection ends, all in one piece.
    @Test(arguments: [HTTP2Script.now.fault(.close), .now.goAway().fault(.close), .now.frame(.data(0, [1]))])
    func everyOther(_ end: HTTP2Script) async throws {
        let gate = Gate()
        let taker = try BodyTaker(
            scene { request in
                let start = BodyTaker.start(request)
                guard request.path == "/9" else { return start }
                let ends = stride(from: 1, to: 19, by: 4).reduce(start.fault(.stall(gate))) {
                    $0.frame(.data($1, Array("def".utf8), endStream: true))
                }
                return ends.then(end)
            })
        var results: [Task<Result<String, any Error>, Never>] = []
        for number in 0..<10 {
            results.append(taker.take(BodyTaking.allCases[number % 3], "/\(number)"))
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

    /// The answer comes before the end of the upload, and the server reads no more of it.
    @Test(arguments: [200, 413], [true, false]) func anEarlyAnswer(_ status: Int, _ isWhole: Bool) async throws {
        let gate = Gate()
        let scene = try scene { request in
            let start = HTTP2Script.now.withholdingWindow().reading(bytes: 65_535).then(
                BodyTaker.start(request, status))
            return (isWhole ? start.end() : start).fault(.stall(gate)).reset(.noError)
        }
        let transfer = scene.session.transfer(scene.post(.bytes(PatternBody(seed: 1, length: 3 << 20).bytes)))
        let taker = try BodyTaker(scene)
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

    @Test(arguments: HTTP2Ending.all, BodyTaking.allCases)
    func whole(_ ending: HTTP2Ending, _ taking: BodyTaking) async throws {
        for isSecure in [true, false] {
            let taker = try BodyTaker(scene(isSecure: isSecure) { _ in ending.head.then(ending.end) })
            for round in 0..<3 { #expect(try await taker.take(taking, "/\(round)").value.get() == ending.body) }
        }
    }

    /// Ten answers of one connection end together, and the connection right after them.
    @Test(arguments: HTTP2Ending.all) func wholeTogether(_ ending: HTTP2Ending) async throws {
        let gate = Gate()
        let ids = stride(from: 1, to: 19, by: 2)
        let taker = try BodyTaker(
            scene { request in
                let start = BodyTaker.start(request)
                guard request.path == "/9" else { return start }
                let ends = ids.reduce(HTTP2Script.now.fault(.stall(gate))) { $0.frame(.data($1, endStream: true)) }
                return ends.then(ending.head).then(ending.end)
            })
        var results: [Task<Result<String, any Error>, Never>] = []
        for number in 0..<9 {
            results.append(taker.take(BodyTaking.allCases[number % 3], "/\(number)"))
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

/// The same where the frames of HTTP/2 are not seen, as far as sockets tell it: what is uncertain fails.
@Suite(.timeLimit(.minutes(5)))
struct HTTP2UnwatchedCutTests {
    private func taker(_ respond: @escaping @Sendable (RecordedRequest) -> HTTP2Script) async throws -> BodyTaker {
        let scene = try HTTP2Scene(respond)
        await Task(executorPreference: scene.session.executor) { curlew_watch_streams(nil, nil) }.value
        return try BodyTaker(scene)
    }

    @Test(arguments: HTTP2Cut.ends.prefix(6) + HTTP2Cut.breaches) func alone(_ cut: HTTP2Cut) async throws {
        let gate = Gate()
        let taker = try await taker { BodyTaker.start($0).fault(.stall(gate)).then(cut.script($0.stream)) }
        let result = taker.take(.data, "/0")
        await taker.waitForStart(0)
        gate.open()
        taker.expectCut(await result.value, "alone")
    }

    /// Of a stream that ends by RST_STREAM(NO_ERROR) sockets tell nothing, the last of the ways.
    @Test(arguments: HTTP2Cut.ends.dropLast()) func amongOthers(_ cut: HTTP2Cut) async throws {
        let gate = Gate()
        let taker = try await taker {
            let start = BodyTaker.start($0)
            return $0.path == "/9" ? start.fault(.stall(gate)).then(cut.script($0.stream)) : start
        }
        let results = (0..<10).map { taker.take(BodyTaking.allCases[$0 % 3], "/\($0)") }
        for number in 0..<10 { await taker.waitForStart(UInt8(number)) }
        gate.open()
        for result in results { taker.expectCut(await result.value, "among others") }
    }

    @Test(arguments: HTTP2Ending.all.prefix(7), BodyTaking.allCases)
    func whole(_ ending: HTTP2Ending, _ taking: BodyTaking) async throws {
        let taker = try await taker { _ in ending.head.then(ending.end) }
        for round in 0..<3 { #expect(try await taker.take(taking, "/\(round)").value.get() == ending.body) }
    }
}
