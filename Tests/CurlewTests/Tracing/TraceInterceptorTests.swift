// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

@Suite("Trace propagation", .timeLimit(.minutes(5)))
struct TraceInterceptorTests {
    private let spans = Lock<[TraceInterceptor.Span]>([])
    private let parent = TraceContext.random()

    private func session(startsTraces: Bool = false) -> Session {
        let spans = spans
        return Session(
            interceptors: [TraceInterceptor(startsTraces: startsTraces) { span in spans.withLock { $0.append(span) } }])
    }

    private func contexts(_ server: MockServer) -> [TraceContext?] {
        server.requests.map { request in
            request.field("traceparent").flatMap {
                TraceContext(traceparent: $0, tracestate: request.field("tracestate"))
            }
        }
    }

    @Test func eachAttemptSendsAChildOfTheCurrentContext() async throws {
        let server = try MockServer { _ in .text("fine") }
        server.on("GET", "/old", .redirect(to: "/new?key=SECRET"))
        let context = try #require(
            TraceContext(traceparent: parent.traceparent, tracestate: "rojo=1,congo=2"))
        try await TraceContext.$current.withValue(context) {
            let session = session()
            let status = try await session.data(for: Request(server.url("/old"))).1.status
            #expect(status == .ok)
            let value = try await session.transfer(Request(server.url("/"))).value
            #expect(value == Data("fine".utf8))
        }
        let sent = contexts(server).compactMap(\.self)
        #expect(sent.map(\.traceID) == Array(repeating: context.traceID, count: 3))
        #expect(Set(sent.map(\.spanID) + [context.spanID]).count == 4)
        #expect(sent.allSatisfy { $0.tracestate == "rojo=1,congo=2" && $0.isSampled })
        let ended = spans.withLock { $0 }
        #expect(ended.map(\.context) == sent)
        #expect(ended.allSatisfy { $0.parent == context.spanID && $0.method == .get && $0.duration > .zero })
        #expect(ended.compactMap { try? $0.result.get() } == [.found, .ok, .ok])
        #expect(ended.map(\.url) == [server.url("/old"), server.url("/new?key=<redacted>"), server.url("/")])
        #expect(Set(ended.map(\.transfer)).count == 2)
        #expect("\(ended[1])".hasPrefix("\(sent[1].traceparent) GET \(server.url("/new")) 200".prefix(60)))
    }

    @Test func traceparentIsSentWithoutContextOnlyIfTracesAreStarted() async throws {
        let server = try MockServer { _ in .text("fine") }
        _ = try await session().data(for: Request(server.url("/")))
        #expect(server.requests[0].field("traceparent") == nil)
        #expect(spans.withLock { $0.isEmpty })
        _ = try await session(startsTraces: true).data(for: Request(server.url("/")))
        let span = try #require(spans.withLock { $0.first })
        #expect(contexts(server) == [nil, span.context])
        #expect(span.parent == nil && span.context.isSampled)
    }

    @Test func traceFieldsOfTheRequestAreNotReplaced() async throws {
        let server = try MockServer { _ in .text("fine") }
        try await TraceContext.$current.withValue(parent) {
            _ = try await session().data(for: Request(server.url("/"), fields: ["Traceparent": "mine"]))
            _ = try await session().data(for: Request(server.url("/"), fields: ["tracestate": "mine=1"]))
        }
        #expect(server.requests[0].fields("traceparent") == ["mine"])
        #expect(server.requests[1].fields("tracestate") == ["mine=1"])
        #expect(spans.withLock { $0.count } == 1)
    }

    @Test func traceContextIsReadFromRequestTag() async throws {
        enum Trace: Request.Tag { typealias Value = TraceContext }
        let server = try MockServer { _ in .text("fine") }
        var request = Request(server.url("/"))
        request.tags[Trace.self] = parent
        let session = Session(interceptors: [TraceInterceptor(context: { $0.tags[Trace.self] })])
        _ = try await session.data(for: request)
        #expect(contexts(server).first??.traceID == parent.traceID)
        #expect(server.requests[0].fields.allSatisfy { !$0.name.contains("Trace.") })
    }

    @Test func failedAttemptReportsASpan() async throws {
        let server = try MockServer { _ in .text("never").fault(.close, at: .start) }
        let error = await TraceContext.$current.withValue(parent) {
            await #expect(throws: NetworkError.self) {
                try await session().data(for: Request(.post, server.url("/?a=SECRET"), body: .text("x")))
            }
        }
        let span = try #require(spans.withLock { $0.first })
        guard case .failure(let failure) = span.result else { return #expect(Bool(false), "it failed") }
        #expect(failure.kind == error?.kind && failure.kind == .connectionLost)
        #expect(!"\(span)".contains("SECRET") && "\(span)".contains("connection lost"))
    }
}
