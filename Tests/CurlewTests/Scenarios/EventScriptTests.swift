// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Curlew
import CurlewEngine
import CurlewTesting
import FoundationEssentials
import Testing

/// Random transfers of every kind; the events of each have to follow the grammar.
@Suite(.timeLimit(.minutes(5)))
struct EventScriptTests {
    @Test func eventGrammarAcceptsEventsInOrder() {
        let whole = EventTests.fresh
        #expect(EventGrammar.flaw(in: whole) == nil)
        #expect(EventGrammar.flaw(in: ["finished: invalid_request"]) == nil)
        #expect(EventGrammar.flaw(in: ["metrics", "finished: cancelled"]) == nil)
        #expect(EventGrammar.flaw(in: whole.dropLast() + ["redirected 302"] + EventTests.reused) == nil)
        #expect(EventGrammar.flaw(in: ["is running", "received", "metrics", "finished"]) == nil)
        #expect(EventGrammar.flaw(in: ["is finished", "metrics", "finished"]) == nil)
        #expect(EventGrammar.flaw(in: ["queued", "paused", "resumed", "metrics", "finished: cancelled"]) == nil)
    }

    @Test(arguments: [
        [], ["queued"], ["finished", "finished"], ["finished", "metrics"], ["queued", "finished"],
        ["queued", "connected", "resolved", "metrics", "finished"], ["queued", "queued", "metrics", "finished"],
        ["queued", "metrics", "metrics", "finished"], ["queued", "head 200", "sent", "metrics", "finished"],
        ["queued", "head 200", "informational 103", "metrics", "finished"],
        ["queued", "redirected 302", "queued", "metrics", "finished"], ["queued", "is running", "metrics", "finished"],
        ["queued", "paused", "paused", "metrics", "finished"], ["queued", "resumed", "metrics", "finished"],
        ["restarted", "metrics", "finished"], ["sent", "nonsense", "metrics", "finished"],
        ["queued", "metrics", "retried", "connected", "finished"], ["queued", "metrics", "received", "finished"],
    ])
    func eventGrammarRejectsEventsOutOfOrder(_ words: [String]) {
        #expect(EventGrammar.flaw(in: words) != nil)
    }

    /// A random transfer: its URL, the API used, and an operation on it.
    private struct Script: Sendable {
        enum Order: CaseIterable { case nothing, cancel, pause, pauseThenCancel }

        let path: String
        let style: CallStyle
        let order: Order
        /// The index of the event after which the operation is carried out.
        let moment: Int
        let isIntercepted: Bool

        init(_ chance: inout some RandomNumberGenerator) {
            let faults = [
                "/plain", "/plain", "/reset", "/close", "/head", "/early", "/long", "/stale", "/busy", "/bad",
            ]
            let hops = Int.random(in: 0...2, using: &chance)
            path = String(repeating: "/hop", count: hops) + (faults.randomElement(using: &chance) ?? "/plain")
            style = CallStyle.allCases.randomElement(using: &chance) ?? .value
            order = Bool.random(using: &chance) ? .nothing : Order.allCases.randomElement(using: &chance) ?? .nothing
            moment = Int.random(in: 0...10, using: &chance)
            isIntercepted = Bool.random(using: &chance)
        }
    }

    private static func server() throws -> MockServer {
        try MockServer { request in
            if request.path.hasPrefix("/hop") { return .redirect(to: String(request.path.dropFirst(4)), status: 307) }
            switch request.path {
            case "/reset": return .text("hello").fault(.reset, at: .body(2))
            case "/close": return .text("hello").fault(.close, at: .body(2))
            case "/head": return .text("hello").fault(.close, at: .head(9))
            case "/early": return .text("hello").informational(103)
            case "/long": return .pattern(PatternBody(seed: 3, length: 300_000)).chunked()
            case "/stale": return .text("hello").fault(.close, at: .end)
            case "/busy": return .text("busy", status: 503)
            case "/bad": return .raw("nonsense\r\n\r\n").closing()
            default: return .text("hello")
            }
        }
    }

    private static let again = ClosureInterceptor { request, context, next in
        let response = try await next(request)
        guard response.head.status == 503, context.attempts < 3 else { return response }
        await response.discard()
        return try await next(request)
    }

    /// Runs a script and returns the events of its transfer, or nil if the API used has no transfer.
    private static func play(_ script: Script, on session: Session, _ server: MockServer) async -> [TransferEvent]? {
        var request = Request(server.url(script.path))
        if script.isIntercepted { request.interceptors = [again] }
        let made = request
        if script.style == .data {
            let task = Task { try await session.data(for: made) }
            if script.order == .cancel { task.cancel() }
            _ = await task.result
            return nil
        }
        let transfer = session.transfer(made)
        let events = transfer.events
        let use = Task {
            switch script.style {
            case .stream: for try await _ in transfer.stream {}
            case .bytes: for try await _ in transfer.bytes {}
            case .progress: for await _ in transfer.progress {}
            case .start: transfer.start()
            case .events: break
            default: _ = try await transfer.value
            }
        }
        var all: [TransferEvent] = []
        for await event in events {
            all.append(event)
            if all.count == script.moment + 1 { Self.carryOut(script.order, transfer) }
        }
        use.cancel()
        _ = await use.result
        return all
    }

    private static func carryOut(_ order: Script.Order, _ transfer: Transfer<Data>) {
        switch order {
        case .nothing: break
        case .cancel: transfer.cancel()
        case .pause:
            transfer.pause()
            transfer.resume()
        case .pauseThenCancel:
            transfer.pause()
            transfer.cancel()
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func randomTransfersEmitEventsInOrder(_ seed: UInt64) async throws {
        var chance = SeededChance(seed)
        let server = try Self.server()
        let notes = SessionEventRecorder()
        let session = Session(observers: [notes]) {
            $0.limits.connectionsPerHost = 3
            $0.timeouts.idle = nil
        }
        let scripts = (0..<100).map { _ in Script(&chance) }
        let heard = Lock<[(Script, [TransferEvent])]>([])
        await scripts.forEachConcurrent(limit: 8) { script in
            if let events = await Self.play(script, on: session, server) {
                heard.withLock { $0.append((script, events)) }
            }
        }
        try await session.shutdown()
        await notes.waitUntilClosed()
        let stories = heard.withLock { $0 }
        for (script, events) in stories {
            check(events.map(\.word), events.map(\.elapsed), "\(script)")
            let attempts = events.filter { $0.word == "metrics" }.map(\.attempt)
            #expect(Set(attempts).count == attempts.count, "\(script)")
        }
        let recorded = Dictionary(grouping: notes.transferEvents.filter { $0.attempt > 0 }, by: \.transfer)
        for events in recorded.values { check(events.map(\.word), events.map(\.elapsed), events.first?.url ?? "") }
        // The transfer's observer and the session's observer receive the same events.
        for (script, events) in stories where events.count > 1 {
            let other = recorded[events[0].transfer]?.map(\.word)
            let known = other ?? []
            #expect(other == nil || known == events.map(\.word), "\(script) \(known) \(events.map(\.word))")
        }
    }

    private func check(_ words: [String], _ elapsed: [Duration], _ what: String) {
        // A session may drop events that its observer reads too slowly.
        let flaw = words.contains { $0.hasPrefix("dropped") } ? nil : EventGrammar.flaw(in: words)
        #expect(flaw == nil, "\(flaw ?? "") in \(words) of \(what)")
        #expect(elapsed == elapsed.sorted(), "\(words) of \(what)")
    }
}
