// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

/// B-95: `peek` returns the start of a body without consuming it.
@Suite(.timeLimit(.minutes(5)))
struct PeekTests {
    private func session(_ count: ByteCount, _ seen: @escaping @Sendable (Data) -> Void) -> Session {
        Session(interceptors: [
            .intercept { request, _, next in
                let (start, response) = try await next(request).peek(count)
                seen(start)
                return response
            }
        ])
    }

    @Test(arguments: [0, 1, 3, 4, 1000])
    func peekedBodyIsStillDeliveredCompletely(_ count: Int64) async throws {
        let text = "hello, this is a body"
        let server = try MockServer { _ in .text(text).chunked(size: 4).trailer("X-Sum", "7") }
        let (stream, seen) = AsyncStream<Data>.makeStream()
        let session = session(.bytes(count)) { seen.yield($0) }
        let response = try await session.transfer(Request(server.url("/"))).response()
        #expect(response.value == Data(text.utf8) && response.trailers["X-Sum"] == "7")
        var streamed: [UInt8] = []
        for try await chunk in session.transfer(Request(server.url("/"))).bytes { streamed += chunk }
        #expect(streamed == Array(text.utf8))
        seen.finish()
        let starts = await stream.reduce(into: [Data]()) { $0.append($1) }
        #expect(starts == [Data(text.utf8.prefix(Int(count))), Data(text.utf8.prefix(Int(count)))])
    }

    @Test func peekWorksOnBufferedBodyAndThrowsOnConsumedBody() async throws {
        let made = IncomingResponse(ResponseHead(status: .ok), body: "abc".utf8, to: "http://h/")
        let (start, response) = try await made.peek(.bytes(2))
        #expect(start == Data("ab".utf8))
        #expect(try await response.collect() == Data("abc".utf8))
        await #expect { try await made.peek() } throws: { ($0 as? NetworkError)?.kind == .invalidRequest }
    }

    /// A connection lost during `peek` throws.
    @Test func peekThrowsWhenTheConnectionIsLost() async throws {
        let server = try MockServer { _ in .text("hello").fault(.close, at: .body(2)) }
        let error = await #expect(throws: NetworkError.self) {
            try await session(.bytes(100)) { _ in }.data(for: Request(server.url("/")))
        }
        #expect(error?.kind == .connectionLost)
    }
}
