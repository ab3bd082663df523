// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Responses that are large, truncated or discarded, and outputs of calls.
@Suite(.timeLimit(.minutes(5)))
struct ClientResponseTests {
    private func api(
        _ response: MockResponse, _ configure: (inout Session.Configuration) -> Void = { _ in }
    ) throws -> (MockServer, JSONClient) {
        let server = try MockServer { _ in response }
        return (server, Client(try BaseURL(server.url("/")), session: Session(Session.Configuration(configure))))
    }

    /// The response limit does not apply to calls that discard the body.
    @Test func responseLimitDoesNotApplyToDiscardedBodies() async throws {
        let long = MockResponse.pattern(PatternBody(seed: 1, length: 3_000_000))
        let (server, api) = try api(long) { $0.limits.responseBody = .mebibytes(1) }
        try await api.post("x")
        try await api.get("x", using: .empty)
        #expect(try await api.get("x", using: .head).status == .ok)
        #expect(server.requestCount == 3)
        let error = await #expect(throws: NetworkError.self) { try await api.get("x", using: .bytes) }
        #expect(error?.kind == .bodyTooLarge)
        let (other, refusing) = try self.api(.pattern(PatternBody(seed: 1, length: 3_000_000), status: 500))
        let refused = await #expect(throws: NetworkError.self) { try await refusing.post("x") }
        #expect(refused?.kind == .unacceptableStatus && refused?.response?.status == .internalServerError)
        #expect(other.requestCount == 1)
    }

    /// A body that is in memory already has no further limit.
    @Test func largeBodyInMemoryIsCollected() async throws {
        let body = Data(count: 65 << 20)
        let response = IncomingResponse(ResponseHead(status: .ok), IncomingBody(body), "http://h/", nil)
        #expect(try await response.collect().count == body.count)
    }

    /// C-07: an unacceptable status is reported although its body is truncated or too large.
    @Test func unacceptableStatusIsReportedWhenTheBodyFails() async throws {
        let (server, api) = try api(.text("not there", status: 404).fault(.close, at: .body(3)))
        let cut = await #expect(throws: NetworkError.self) { try await api.get("x", using: .text) }
        #expect(cut?.kind == .unacceptableStatus && cut?.body == Array("not".utf8))
        #expect((cut?.cause as? NetworkError)?.kind == .connectionLost)
        let task = await #expect(throws: NetworkError.self) { try await api.transfer(.get, "x", using: .text).value }
        #expect(task?.kind == .unacceptableStatus)
        let whole = await #expect(throws: NetworkError.self) {
            try await api.get("x", options: .statuses(.any), using: .text)
        }
        #expect(whole?.kind == .connectionLost && server.requestCount == 3)
        let (limited, small) = try self.api(.text(String(repeating: "x", count: 5000), status: 422))
        let large = await #expect(throws: NetworkError.self) {
            try await small.get("x", options: .responseLimit(.kibibytes(1)), using: .text)
        }
        #expect(large?.kind == .unacceptableStatus && limited.requestCount == 1)
    }

    /// A stream with an unacceptable status fails without waiting for the end of its body.
    @Test func unacceptableStatusEndsAnEndlessStream() async throws {
        let gate = Gate()
        let (server, api) = try api(.text("no places", status: 503).fault(.stall(gate), at: .body(3)))
        let error = await #expect(throws: NetworkError.self) { for try await _ in api.stream("x") {} }
        #expect(error?.kind == .unacceptableStatus && error?.body == Array("no ".utf8))
        gate.open()
        #expect(server.requestCount == 1)
    }

    /// Each await returns the same output, which is made once.
    @Test func outputIsDecodedOnce() async throws {
        let (server, api) = try api(.text("x"))
        let count = Lock(0)
        let counting = Serializers.Closure { response in
            _ = try await response.collect()
            return count.withLock { count in
                count += 1
                return count
            }
        }
        let task = api.transfer(.get, "x", using: counting)
        async let first = task.value
        async let second = task.value
        #expect(try await [first, second, task.response().value] == [1, 1, 1])
        #expect(count.withLock { $0 } == 1 && server.requestCount == 1)
    }

    /// A call that cannot be sent keeps its label and its priority for observers.
    @Test func invalidCallsKeepTheirOptions() throws {
        let (server, api) = try api(.text("x"))
        let task = api.transfer(.post, "x", .json(Double.nan), options: [.label("upload"), .priority(.high)])
        #expect(task.label == "upload" && task.priority == .high && server.requestCount == 0)
    }

    /// Bodies of error responses are decoded with the client's format.
    @Test func problemsAreDecodedWithTheClientsFormat() async throws {
        struct Invalid: Decodable { var fieldErrors: [String] }
        struct Save: Endpoint {
            typealias Problem = Invalid

            let path: Path = "x"
        }
        let server = try MockServer { _ in .json(#"{"field_errors": ["name"]}"#, status: 422) }
        let snake = JSON { _, decoder in decoder.keyDecodingStrategy = .convertFromSnakeCase }
        let api = Client(try BaseURL(server.url("/")), responses: snake)
        let error = await #expect(throws: APIError<Invalid>.self) { try await api.send(Save()) }
        #expect(error?.problem?.fieldErrors == ["name"])
        let accepting = api.with { $0.options = .statuses(.any) }
        enum Reply { case invalid(Invalid), text(String) }
        let reply = try await accepting.get(
            "x", using: .oneOf(.when(.decoding(Invalid.self), Reply.invalid), .when(.text, Reply.text)))
        guard case .invalid(let invalid) = reply else { return #expect(Bool(false), "\(reply)") }
        #expect(invalid.fieldErrors == ["name"])
        let typed: Invalid = try await accepting.request(.post, "x", parameters: ["a": 1])
        #expect(typed.fieldErrors == ["name"])
    }

    /// A response with two equal Content-Type fields is decoded.
    @Test func repeatedContentTypeIsAccepted() async throws {
        let response = MockResponse.json("7").field("Content-Type", "application/json")
        let (server, api) = try api(response.field("Content-Type", "application/json"))
        #expect(try await api.get("x", as: Int.self) == 7)
        #expect(server.requestCount == 1)
    }
}
