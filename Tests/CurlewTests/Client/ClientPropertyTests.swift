// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// Properties of clients with random values and any split of a body into chunks.
@Suite(.timeLimit(.minutes(5)))
struct ClientPropertyTests {
    /// An independent JSON parser reads the client's bodies, and the client reads independently written JSON.
    @Test func randomJSONRoundTrips() async throws {
        let server = try MockServer { request in
            guard let value = try? PlainJSON.read(request.bodyText) else { return .status(400) }
            var chance = SeededChance(UInt64(request.bodyLength))
            return .json(PlainJSON.write(value, &chance))
        }
        let api = Client(try BaseURL(server.origin))
        for seed in 0..<100 as Range<UInt64> {
            var chance = SeededChance(seed)
            let value = JSONValue.random(&chance, depth: 4)
            let read: JSONValue? = try await api.post("x", .json(value))
            #expect(read ?? .null == value, "seed \(seed)")
            #expect(try PlainJSON.read(server.requests.last?.bodyText ?? "") == value, "seed \(seed)")
        }
    }

    @Test(arguments: [Request.QueryEncoder(), Request.QueryEncoder(arrays: .indexed)])
    func randomQueriesRoundTrip(_ encoder: Request.QueryEncoder) async throws {
        let server = try MockServer { _ in .status(204) }
        let api = Client(try BaseURL(server.origin)).with { $0.configuration.queryEncoder = encoder }
        for seed in 0..<50 as Range<UInt64> {
            var chance = SeededChance(seed)
            // Only lists with indices can contain objects and lists without ambiguity.
            let value = QueryValue.random(&chance, depth: 4, listsOfTextsOnly: encoder == Request.QueryEncoder())
            try await api.post("x", .form(value, by: encoder), query: .encoding(value))
            let request = try #require(server.requests.last)
            #expect(QueryReader.value(of: request.query ?? "") == value, "seed \(seed)")
            #expect(QueryReader.value(of: request.bodyText) == value, "seed \(seed)")
        }
    }

    /// HTTP/1.1 chunks of every size, of the plain and of the compressed body.
    @Test(arguments: SplitBody.allCases, [false, true])
    func everyHTTPChunkSizeDecodesTheSame(_ body: SplitBody, _ isCompressed: Bool) async throws {
        let bytes = isCompressed ? try Encoded.deflated(body.bytes) : body.bytes
        let fields = [("Content-Type", body.type)] + (isCompressed ? [("Content-Encoding", "gzip")] : [])
        let server = try MockServer()
        server.on(nil, "/x", inOrder: (1...bytes.count).map { .status(200, fields, body: bytes).chunked(size: $0) })
        let api = Client(try BaseURL(server.origin))
        for size in 1...bytes.count {
            let read = try await body.read(by: api)
            #expect(read.utf8.elementsEqual(body.text.utf8), "chunks of \(size)")
        }
        #expect(server.connectionCount == 1)
    }

    /// Pieces of exactly these sizes, from an interceptor, because a socket could join them.
    @Test(arguments: SplitBody.allCases)
    func everyPieceSizeDecodesTheSame(_ body: SplitBody) async throws {
        let session = Session(interceptors: [
            .intercept { request, _, _ in
                let size = Int(request.options.label ?? "") ?? 1
                let chunks = AsyncStream<ByteChunk> { pieces in
                    for start in stride(from: 0, to: body.bytes.count, by: size) {
                        pieces.yield(ByteChunk(body.bytes[start...].prefix(size)))
                    }
                    pieces.finish()
                }
                let head = ResponseHead(status: .ok, fields: [.contentType: body.type])
                return IncomingResponse(head, chunks: chunks, to: request)
            }
        ])
        for size in 1...body.bytes.count {
            let api = Client("http://nowhere.invalid", session: session).with { $0.options.label = "\(size)" }
            let read = try await body.read(by: api)
            #expect(read.utf8.elementsEqual(body.text.utf8), "pieces of \(size)")
        }
    }
}

/// A body with multibyte characters that most chunk sizes split, and the serializer that reads it.
enum SplitBody: CaseIterable, Sendable {
    case json, utf8, utf16, shiftJIS, lines

    private static let unicode = "é漢👴🏻 \u{FEFF}\r\nend"
    private static let japanese = "日本語テキスト abc"

    var type: String {
        switch self {
        case .json: "application/json"
        case .utf8, .lines: "text/plain; charset=utf-8"
        case .utf16: "text/plain"
        case .shiftJIS: "text/plain; charset=Shift_JIS"
        }
    }

    var bytes: [UInt8] {
        switch self {
        case .json, .utf8: Array(text.utf8)
        case .utf16: [0xFF, 0xFE] + text.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8($0 >> 8)] }
        case .shiftJIS: EncodedText.bytes("93fa967b8cea8365834c8358836720616263")
        case .lines: Array("one\r\n\nthree é漢👴🏻\n\rlast\r".utf8)
        }
    }

    /// The expected output.
    var text: String {
        switch self {
        case .json: #"{"a":"é漢👴🏻\n","b":[1,-2.5,null,true],"c":{}}"#
        case .utf8, .utf16: Self.unicode
        case .shiftJIS: Self.japanese
        case .lines: "one||three é漢👴🏻|\rlast\r|"
        }
    }

    func read(by api: JSONClient) async throws -> String {
        switch self {
        case .json: return try await api.get("x", as: JSONValue.self).description
        case .utf8, .utf16, .shiftJIS: return try await api.get("x", using: .text)
        case .lines:
            var lines = ""
            for try await line in api.stream("x", using: Lines()) { lines += line + "|" }
            return lines
        }
    }
}

/// Lines that end with LF or CRLF.
private struct Lines: StreamSerializer {
    let accepts: [MediaType] = ["text/*"]

    func begin(_ head: ResponseHead) -> [UInt8] { [] }

    func decode(_ chunk: ByteChunk?, _ rest: inout [UInt8]) -> [String] {
        guard let chunk else { return rest.isEmpty ? [] : [String(decoding: rest, as: UTF8.self)] }
        rest += chunk
        var lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        rest = lines.popLast().map(Array.init) ?? []
        return lines.map { String(decoding: $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0, as: UTF8.self) }
    }
}
