// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Streamed responses with stream serializers.
@Suite(.timeLimit(.minutes(5)))
struct ClientStreamTests {
    private struct Odd: Error {}

    /// A serializer of words, as a user of the library would write it.
    private struct Words: StreamSerializer {
        var failing = ""
        let accepts: [MediaType] = ["text/plain"]

        func begin(_ head: ResponseHead) throws -> String {
            if failing == "begin" { throw Odd() }
            return ""
        }

        func decode(_ chunk: ByteChunk?, _ rest: inout String) throws -> [String] {
            guard let chunk else {
                if failing == "end" { throw Odd() }
                defer { rest = "" }
                return rest.isEmpty ? [] : [rest]
            }
            if failing == "chunk" { throw Odd() }
            var words = (rest + String(decoding: chunk, as: UTF8.self)).components(separatedBy: " ")
            rest = words.removeLast()
            return words
        }
    }

    private func api(_ response: MockResponse, _ session: Session = Session()) throws -> (MockServer, JSONClient) {
        let server = try MockServer { _ in response }
        return (server, Client(try BaseURL(server.url("/")), session: session))
    }

    /// Every chunk size yields the same elements.
    @Test(arguments: [1, 2, 3, 7, 100])
    func everyChunkSizeYieldsTheSameElements(_ size: Int) async throws {
        let words = (0..<40).map { String(repeating: "w", count: $0 % 5 + 1) }
        let (server, api) = try api(.text(words.joined(separator: " ")).chunked(size: size))
        var read: [String] = []
        for try await word in api.stream("x", using: Words()) { read.append(word) }
        #expect(read == words)
        #expect(server.requests.first?.field("Accept") == "text/plain")
    }

    @Test func streamYieldsBytesByDefault() async throws {
        let (server, api) = try api(.text("hello"))
        var bytes: [UInt8] = []
        for try await chunk in api.stream("x", query: ["a": 1]) { bytes += chunk }
        for try await chunk in api.stream(.post, "x", .text("q"), using: .chunks) { bytes += chunk }
        #expect(bytes == Array("hellohello".utf8))
        #expect(server.requests.map(\.target) == ["/x?a=1", "/x"] && server.requests[1].bodyText == "q")
    }

    @Test func unacceptableStatusAndContentTypeFail() async throws {
        let long = [UInt8](repeating: 0x61, count: 200_000)
        let (server, api) = try api(.bytes(long, status: 404).field("Content-Type", "text/plain").chunked())
        let refused = await #expect(throws: NetworkError.self) {
            for try await _ in api.stream("x", using: Words()) {}
        }
        #expect(refused?.kind == .unacceptableStatus && refused?.body == Array(long.prefix(65_536)))
        let (json, other) = try self.api(.json("{}"))
        #expect(server.port != json.port)
        let error = await #expect(throws: NetworkError.self) {
            for try await _ in other.stream("x", using: Words()) {}
        }
        #expect(error?.kind == .unacceptableContentType && error?.body == Array("{}".utf8))
    }

    /// The content type of a response without a body is not validated.
    @Test func emptyBodyHasNoContentTypeToValidate() async throws {
        let (server, api) = try api(.status(200).field("Content-Type", "application/json"))
        for try await _ in api.stream("x", using: Words()) { Issue.record("an empty body has no words") }
        #expect(server.requestCount == 1)
    }

    @Test(arguments: ["begin", "chunk", "end"])
    func serializerErrorsAreRepeated(_ stage: String) async throws {
        let (server, api) = try api(.text("a b c"))
        var iterator = api.stream("x", using: Words(failing: stage)).makeAsyncIterator()
        var errors: [NetworkError] = []
        var words: [String] = []
        while errors.count < 2 {
            do throws(NetworkError) {
                guard let word = try await iterator.next() else { break }
                words.append(word)
            } catch {
                errors.append(error)
            }
        }
        #expect(errors.map(\.kind) == [.decodingFailed, .decodingFailed], "next() throws the same error again")
        #expect(errors.first?.cause is Odd)
        #expect(words == (stage == "end" ? ["a", "b"] : []))
        #expect(server.requestCount == 1)
    }

    /// Leaving the loop cancels the call, and a second iteration throws.
    @Test func leavingTheLoopCancelsTheCall() async throws {
        let (server, api) = try api(.pattern(PatternBody(seed: 1, length: 50_000_000)))
        let stream = api.stream("x")
        for try await _ in stream { break }
        await server.waitUntil(openConnections: 0)
        let error = await #expect(throws: NetworkError.self) { for try await _ in stream {} }
        #expect(error?.kind == .invalidRequest || error?.kind == .cancelled)
        #expect(server.requestCount == 1)
    }

    /// A second concurrent iteration throws, and the first one continues.
    @Test func secondReaderFails() async throws {
        let (server, api) = try api(.text("a b c").chunked(size: 1))
        let stream = api.stream("x", using: Words())
        var first = stream.makeAsyncIterator()
        #expect(try await first.next() == "a")
        let error = await #expect(throws: NetworkError.self) { for try await _ in stream {} }
        #expect(error?.kind == .invalidRequest)
        #expect(try await first.next() == "b")
        #expect(try await first.next() == "c")
        #expect(try await first.next() == nil && server.requestCount == 1)
    }

    @Test func cancellationEndsTheStream() async throws {
        let gate = Gate()
        let (server, api) = try api(.text("a b c").fault(.stall(gate), at: .body(4)))
        let task = Task {
            for try await word in api.stream("x", using: Words()) where word == "b" {}
        }
        _ = await server.nextRequest()
        task.cancel()
        let result = await task.result
        let error = #expect(throws: NetworkError.self) { try result.get() }
        #expect(error?.isCancellation == true)
        gate.open()
    }
}
