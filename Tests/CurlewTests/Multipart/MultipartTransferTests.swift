// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import Curlew

/// Sent forms: kinds of parts, redirects and retries, failures, progress, spooling; and multipart responses.
@Suite(.timeLimit(.minutes(5)))
struct MultipartTransferTests {
    private func request(_ form: MultipartForm, _ url: String, _ method: Curlew.Method = .post) -> Request {
        Request(method, url, fields: form.fields, body: .multipart(form))
    }

    /// Parses the body that a server received with `MultipartParser`.
    private func parts(of seen: RecordedRequest) throws -> [MultipartElements.Part] {
        let type = try #require(seen.field("Content-Type").flatMap { MediaType($0) })
        var parser = MultipartParser(
            boundary: try #require(type[parameter: "boundary"]), limits: MultipartElements.Limits())
        var parts: [MultipartElements.Part] = []
        var body = Data()
        var fields: HeaderFields = [:]
        func take(_ element: MultipartElements.Element) {
            switch element {
            case .part(let found): (fields, body) = (found, Data())
            case .bytes(let chunk): body.append(contentsOf: chunk)
            case .end: parts.append(MultipartElements.Part(fields: fields, body: body))
            }
        }
        try parser.read(ByteChunk(seen.body)) { take($0) }
        try parser.finish { take($0) }
        return parts
    }

    private func pattern(_ seed: UInt64, _ length: Int) -> PatternBody { PatternBody(seed: seed, length: length) }

    @Test(arguments: [10, 70_000, 200_000], [false, true])
    func partsOfEveryKindAreSent(_ size: Int, _ isLengthKnown: Bool) async throws {
        let server = try MockServer { _ in .text("thanks") }
        let patterns = (0..<3).map { pattern(UInt64($0), size + $0) }
        let file = try ScratchFile(patterns[1].bytes)
        let number = open(file.path, O_RDONLY | O_CLOEXEC)
        defer { close(number) }
        let form = MultipartForm {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("bytes", bytes: patterns[0].bytes, filename: "a.bin")
            MultipartForm.Part("file", file: file.path)
            MultipartForm.Part("empty", bytes: [])
            MultipartForm.Part(
                "stream", stream: ChunkSource(body: patterns[2], chunk: 5003),
                length: isLengthKnown ? Int64(patterns[2].length) : nil)
            MultipartForm.Part("descriptor", body: .descriptor(number))
            MultipartForm.Part("last", "x")
        }
        let transfer = Session().transfer(request(form, server.url("/")))
        #expect(try await transfer.value == Data("thanks".utf8))
        let seen = try #require(server.requests.first)
        #expect(seen.field("Transfer-Encoding") == (isLengthKnown ? nil : "chunked"))
        #expect(seen.field("Content-Length") == (isLengthKnown ? "\(seen.bodyLength)" : nil))
        let bodies = patterns.map(\.bytes)
        let expected = [Array("Alps".utf8), bodies[0], bodies[1], [], bodies[2], bodies[1], [0x78]]
        let read = try parts(of: seen)
        #expect(read.map { SHA256Stream.hex(of: $0.body) } == expected.map { SHA256Stream.hex(of: $0) })
        #expect(read.map(\.name) == ["title", "bytes", "file", "empty", "stream", "descriptor", "last"])
        #expect(read[1].filename == "a.bin" && read[2].contentType == .octetStream)
        #expect(server.violations == [])
        let progress = form.progress(at: transfer.currentProgress)
        #expect(progress.map(\.isFinished) == Array(repeating: true, count: 7))
        #expect(progress.map(\.sent) == read.map { Int64($0.body.count) })
        #expect(progress.map(\.total) == progress.map(\.sent))
        #expect(progress.allSatisfy { $0.fraction == 1 } && progress.map(\.index) == Array(0..<7))
    }

    @Test(arguments: [Curlew.Method.put, .patch, .delete, "REPORT"])
    func formsAreSentWithAnyMethod(_ method: Curlew.Method) async throws {
        let server = try MockServer { _ in .text("thanks") }
        let form = MultipartForm([MultipartForm.Part("a", "1")])
        _ = try await Session().data(for: request(form, server.url("/"), method))
        let seen = try #require(server.requests.first)
        #expect(seen.method == method.rawValue)
        #expect(try parts(of: seen).map(\.name) == ["a"])
    }

    @Test func formsAreSentByAClient() async throws {
        let server = try MockServer { request in .json("{\"id\": \(request.bodyLength)}") }
        let api = Client(try BaseURL(server.url("/v1")))
        let answer: [String: Int] = try await api.post("photos", .multipart { MultipartForm.Part("title", "Alps") })
        let seen = try #require(server.requests.first)
        #expect(answer["id"] == seen.bodyLength)
        #expect(try parts(of: seen).first?.body == Data("Alps".utf8))
        let empty = try await networkError { try await api.post("photos", .multipart {}) }
        #expect(empty.kind == .invalidRequest && empty.message.contains("no parts") && server.requestCount == 1)
    }

    @Test func formsAreSentOverHTTP2() async throws {
        let scene = try HTTP2Scene { _ in .respond(text: "thanks") }
        let patterns = (0..<2).map { pattern(UInt64($0), 200_000) }
        let file = try ScratchFile(patterns[0].bytes)
        let form = MultipartForm {
            MultipartForm.Part("file", file: file.path)
            MultipartForm.Part("stream", stream: ChunkSource(body: patterns[1], chunk: 7001))
        }
        _ = try await scene.session.data(for: request(form, scene.server.url("/")))
        let seen = try #require(scene.server.requests.first)
        #expect(try parts(of: seen).map { SHA256Stream.hex(of: $0.body) } == patterns.map(\.sha256))
    }

    // MARK: Redirects and retries

    @Test func formIsResentAfterARedirect() async throws {
        let server = try MockServer { _ in .text("thanks") }
        server.on("POST", "/from", .redirect(to: "/to", status: 307))
        let file = try ScratchFile(pattern(1, 200_000).bytes)
        let form = MultipartForm {
            MultipartForm.Part("file", file: file.path)
            MultipartForm.Part("again", stream: ChunkSource(body: pattern(2, 100_000)), canReplay: true)
        }
        _ = try await Session().data(for: request(form, server.url("/from")))
        #expect(server.requests.map(\.target) == ["/from", "/to"])
        #expect(Set(server.requests.map(\.bodySHA256)).count == 1)
        #expect(server.requests.last?.field("Content-Type") == form.contentType.description)
    }

    @Test func nonReplayablePartIsNamedAfterARedirect() async throws {
        let server = try MockServer { _ in .text("thanks") }
        server.on("POST", "/from", .redirect(to: "/to", status: 308))
        let form = MultipartForm {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("log", stream: ChunkSource(body: pattern(2, 1000)))
        }
        let session = Session()
        let error = try await networkError { try await session.data(for: request(form, server.url("/from"))) }
        #expect(error.kind == .bodyNotReplayable && error.hint?.contains("the part “log”") == true, "\(error)")
        let again = try await networkError { try await session.data(for: request(form, server.url("/to"))) }
        #expect(again.kind == .bodyNotReplayable && again.phase == .preparing)
        #expect(again.hint?.contains("the part “log”") == true && server.requestCount == 1)
    }

    /// The server has closed the kept connection, which the client notices only after it has begun to send the form.
    @Test func formIsResentAfterAStaleConnection() async throws {
        let server = try MockServer { _ in .text("thanks") }
        server.on("GET", "/", .text("hello").closing())
        let file = try ScratchFile(pattern(3, 100_000).bytes)
        let form = MultipartForm([MultipartForm.Part("file", file: file.path)])
        let session = Session()
        for _ in 0..<5 {
            _ = try await session.data(for: Request(server.url("/")))
            _ = try await session.data(for: request(form, server.url("/put"), .put))
        }
        #expect(Set(server.requests.filter { $0.method == "PUT" && $0.isBodyComplete }.map(\.bodySHA256)).count == 1)
    }

    // MARK: Failures

    private func failure(_ part: MultipartForm.Part, _ change: (() throws -> Void)? = nil) async throws -> NetworkError
    {
        let server = try MockServer { _ in .text("x") }
        let form = MultipartForm([MultipartForm.Part("before", "x"), part, MultipartForm.Part("after", "x")])
        let transfer = Session().transfer(request(form, server.url("/")))
        try change?()
        let error = try await networkError { try await transfer.value }
        #expect(server.requests.allSatisfy { !$0.isBodyComplete })
        return error
    }

    @Test(arguments: ["/nonexistent/file", "/tmp", "/dev/null", ""]) func partsThatAreNoRegularFilesFail(_ path: String)
        async throws
    {
        let error = try await failure(MultipartForm.Part("image", file: path))
        #expect(error.kind == .invalidRequest && error.phase == .preparing)
        #expect(error.message.contains("the part “image”: ") && error.message.contains(path), "\(error)")
    }

    @Test(arguments: [0, 999, 5000]) func fileThatChangesItsSizeBeforeSendingFails(_ length: Int) async throws {
        let file = try ScratchFile(pattern(1, 1000).bytes)
        let error = try await failure(MultipartForm.Part("image", file: file.path)) {
            try file.write(pattern(2, length).bytes)
        }
        #expect(error.kind == .bodyFailed && error.phase == .sending)
        #expect(error.message.contains("the part “image”: \(file.path) changed its size"), "\(error)")
    }

    @Test func fileThatGrowsWhileSendingFails() async throws {
        let gate = Gate()
        // A sparse file that is larger than all buffers together.
        let file = try ScratchFile([])
        #expect(truncate(file.path, 64 << 20) == 0)
        let server = try MockServer { _ in .text("x") }
        server.on("POST", "/", .text("x"), reading: .whole.stalling(at: gate, after: 1000))
        let form = MultipartForm([MultipartForm.Part("image", file: file.path)])
        let transfer = Session().transfer(request(form, server.url("/"))).start()
        await gate.waitUntilReached()
        let handle = try #require(fopen(file.path, "a"))
        fputs("more", handle)
        fclose(handle)
        gate.open()
        let error = try await networkError { try await transfer.value }
        #expect(error.kind == .bodyFailed && error.message.contains("changed its size while it was sent"), "\(error)")
    }

    @Test func streamsOfTheWrongLengthFail() async throws {
        let body = pattern(1, 1000)
        let short = try await failure(
            MultipartForm.Part("log", stream: ChunkSource(body: body, chunk: 300), length: 1001))
        #expect(short.kind == .bodyFailed, "\(short)")
        #expect(short.message.contains("the part “log”: it ended after 1000 of the 1001 bytes declared"), "\(short)")
        let long = try await failure(
            MultipartForm.Part("log", stream: ChunkSource(body: body, chunk: 300), length: 999))
        #expect(long.message.contains("the part “log”: it has more than the 999 bytes declared"), "\(long)")
        let broken = try await failure(
            MultipartForm.Part("log", stream: ChunkSource(body: body, chunk: 300, failsAt: 2)))
        #expect(broken.kind == .bodyFailed && broken.message.contains("the part “log”: "), "\(broken)")
        #expect(broken.cause as? ChunkSource.Broken == ChunkSource.Broken(reason: "chunk 2"))
    }

    @Test func streamOfDeclaredLengthZeroIsNotRead() async throws {
        let server = try MockServer { _ in .text("x") }
        let source = ChunkSource(body: pattern(1, 100))
        let form = MultipartForm([MultipartForm.Part("none", stream: source, length: 0), MultipartForm.Part("a", "1")])
        _ = try await Session().data(for: request(form, server.url("/")))
        #expect(try parts(of: try #require(server.requests.first)).map(\.body.count) == [0, 1])
        #expect(await source.meter.iterations == 0)
    }

    @Test func cancellationEndsAStalledStreamPart() async throws {
        let server = try MockServer { _ in .text("x") }
        let gate = Gate()
        let form = MultipartForm([
            MultipartForm.Part("held", stream: ChunkSource(body: pattern(1, 100), chunk: 10, hold: (5, gate))),
            MultipartForm.Part("after", "x"),
        ])
        let transfer = Session().transfer(request(form, server.url("/"))).start()
        _ = await server.nextRequest()
        transfer.cancel()
        let error = try await networkError { try await transfer.value }
        #expect(error.isCancellation)
        gate.open()
        await server.waitUntil(openConnections: 0)
        #expect(server.requests.allSatisfy { !$0.isBodyComplete })
    }

    // MARK: Progress

    @Test func progressOfPartsIsReported() async throws {
        let server = try MockServer { _ in .text("x") }
        let gate = Gate()
        let file = try ScratchFile(pattern(1, 1000).bytes)
        let form = MultipartForm {
            MultipartForm.Part("title", "Alps")
            MultipartForm.Part("file", file: file.path)
            MultipartForm.Part("stream", stream: ChunkSource(body: pattern(2, 90), chunk: 30, hold: (2, gate)))
            MultipartForm.Part("last", "bye")
        }
        let before = form.progress(at: TransferProgress())
        #expect(before.map(\.total) == [4, nil, nil, 3] && before.map(\.isFinished) == [false, false, false, false])
        let transfer = Session().transfer(request(form, server.url("/")))
        var seen: [MultipartForm.PartProgress] = []
        for await progress in transfer.progress {
            let parts = form.progress(at: progress)
            #expect(parts.map(\.sent).reduce(0, +) <= progress.sent)
            if parts[2].sent == 60 {
                seen = parts
                gate.open()
            }
        }
        #expect(seen.map(\.sent) == [4, 1000, 60, 0] && seen.map(\.total) == [4, 1000, nil, 3])
        #expect(seen.map(\.isFinished) == [true, true, false, false])
        #expect(seen.map(\.fraction) == [1, 1, nil, 0])
        let after = form.progress(at: transfer.currentProgress)
        #expect(after.map(\.sent) == [4, 1000, 90, 3] && after.map(\.total) == [4, 1000, 90, 3])
        #expect(after.map(\.isFinished) == [true, true, true, true])
    }

    // MARK: Spooling

    @Test func spooledFormHasTheSameBytes() async throws {
        let server = try MockServer { _ in .text("x") }
        let file = try ScratchFile(pattern(1, 700_000).bytes)
        let form = MultipartForm {
            MultipartForm.Part("file", file: file.path)
            MultipartForm.Part("stream", stream: ChunkSource(body: pattern(2, 300_000), chunk: 10_007), canReplay: true)
        }
        let path = file.path + ".spool"
        defer { unlink(path) }
        let (body, type) = try await form.spool(to: path)
        let (session, url) = (Session(), server.url("/"))
        for body in [body, .multipart(form)] {
            _ = try await session.data(for: Request(.post, url, fields: [.contentType: "\(type)"], body: body))
        }
        #expect(body.canReplay && Set(server.requests.map(\.bodySHA256)).count == 1)
        #expect(server.requests.first?.field("Content-Length") == "\(server.requests[0].bodyLength)")
        #expect(type == form.contentType)
        var facts = stat()
        #expect(stat(path, &facts) == 0 && facts.st_mode & 0o777 == 0o600)
        let taken = try await networkError { try await form.spool(to: path) }
        #expect(taken.kind == .invalidRequest && taken.message.contains("File exists"), "\(taken)")
        #expect(stat(path, &facts) == 0 && facts.st_size > 1_000_000, "the existing file is unchanged")
    }

    @Test func failedSpoolRemovesTheFile() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/curlew-spool-\(UUID().uuidString)"
        let cases: [(MultipartForm, NetworkError.Kind)] = [
            (MultipartForm([]), .invalidRequest),
            (MultipartForm([MultipartForm.Part("f", file: "/no/file")]), .invalidRequest),
            (
                MultipartForm([
                    MultipartForm.Part("s", stream: ChunkSource(body: pattern(1, 100), chunk: 9, failsAt: 3))
                ]), .bodyFailed
            ),
            (
                MultipartForm([MultipartForm.Part("s", stream: ChunkSource(body: pattern(1, 100)), length: 101)]),
                .bodyFailed
            ),
        ]
        for (form, kind) in cases {
            let error = try await networkError { try await form.spool(to: path) }
            #expect(error.kind == kind && error.phase == .preparing, "\(error)")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
        let nowhere = try await networkError {
            try await MultipartForm([MultipartForm.Part("a", "")]).spool(to: "/no/folder/x")
        }
        #expect(nowhere.kind == .invalidRequest && nowhere.hint != nil)
        let full = try await networkError {
            try await MultipartForm([MultipartForm.Part("a", "")]).spool(to: "/dev/full")
        }
        #expect(full.kind == .invalidRequest, "the file exists already")
    }

    @Test func cancelledSpoolRemovesTheFile() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/curlew-spool-\(UUID().uuidString)"
        let gate = Gate()
        let source = ChunkSource(body: pattern(1, 100), chunk: 10, hold: (5, gate))
        let task = Task { try await MultipartForm([MultipartForm.Part("s", stream: source)]).spool(to: path) }
        while await source.meter.pulls < 5, !Task.isCancelled { await Task.yield() }
        task.cancel()
        let error = try await networkError { try await task.value }
        #expect(error.isCancellation && !FileManager.default.fileExists(atPath: path))
        gate.open()
    }

    @Test func spoolInACancelledTaskCreatesNoFile() async throws {
        let path = FileManager.default.temporaryDirectory.path + "/curlew-spool-\(UUID().uuidString)"
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await MultipartForm([MultipartForm.Part("a", "b")]).spool(to: path)
        }
        let error = try await networkError { try await task.value }
        #expect(error.isCancellation && !FileManager.default.fileExists(atPath: path))
    }

    // MARK: Responses

    @Test func responseLimitAppliesToAllParts() async throws {
        let bytes = Array("--B\r\n\r\n\(String(repeating: "x", count: 3000))\r\n--B--\r\n".utf8)
        let server = try MockServer { _ in .status(200, [("Content-Type", "multipart/mixed; boundary=B")], body: bytes)
        }
        let api = Client(try BaseURL(server.url("/")))
        #expect(try await api.get("x", options: .responseLimit(.bytes(3100)), using: .parts).count == 1)
        let error = try await networkError {
            try await api.get("x", options: .responseLimit(.bytes(3000)), using: .parts)
        }
        #expect(error.kind == .bodyTooLarge)
    }

    @Test(arguments: [1, 7, 1000])
    func responsePartsAreParsed(_ size: Int) async throws {
        let form = MultipartForm {
            MultipartForm.Part("a", "1")
            MultipartForm.Part("b", bytes: pattern(4, 3000).bytes, filename: "b.bin")
        }
        guard let joined = form.layout.body.source as? JoinedBody, let bytes = joined.joinedBytes else { return }
        let type = "Multipart/Mixed; boundary=\"\(form.boundary)\""
        let server = try MockServer { _ in .status(200, [("Content-Type", type)], body: bytes).chunked(size: size) }
        let api = Client(try BaseURL(server.url("/")))
        let parts = try await api.get("x", using: .parts)
        #expect(parts.map(\.name) == ["a", "b"] && parts[1].body == Data(pattern(4, 3000).bytes))
        #expect(server.requests.first?.field("Accept") == "multipart/*")
        var (names, count) = ([String?](), 0)
        for try await element in api.stream("x", using: .multipart) {
            switch element {
            case .part(let fields): names.append(MultipartElements.Part(fields: fields, body: Data()).name)
            case .bytes(let chunk): count += chunk.count
            case .end: break
            }
        }
        #expect(names == ["a", "b"] && count == 3001)
        let error = try await networkError {
            try await api.get("x", using: .parts(MultipartElements.Limits(part: .bytes(2999))))
        }
        #expect(error.kind == .decodingFailed && error.message.contains("part 2 has more than"), "\(error)")
        #expect(error.response?.status == .ok)
        let many = try await networkError { try await api.get("x", using: .parts(MultipartElements.Limits(parts: 1))) }
        #expect(many.kind == .decodingFailed && many.message.contains("more than 1 parts"))
    }

    @Test func truncatedMultipartResponseFails() async throws {
        let server = try MockServer { _ in
            .status(
                200, [("Content-Type", "multipart/x-mixed-replace; boundary=B")], body: Array("--B\r\n\r\nabc".utf8))
        }
        let api = Client(try BaseURL(server.url("/")))
        var elements: [MultipartElements.Element] = []
        let error = try await networkError {
            for try await element in api.stream("x", using: .multipart) { elements.append(element) }
        }
        #expect(elements == [.part([:]), .bytes(ByteChunk("abc".utf8))])
        #expect(error.kind == .decodingFailed && error.message.contains("ends inside part 1"))
        let collected = try await networkError { try await api.get("x", using: .parts) }
        #expect(collected.kind == .decodingFailed && collected.phase == .decoding)
    }
}
