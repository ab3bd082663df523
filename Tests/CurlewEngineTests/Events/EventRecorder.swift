// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import Glibc

@testable import CurlewEngine

/// An observer that records each event as a short text.
final class EventRecorder: EngineObserver {
    struct Entry: Sendable {
        var transfer: UInt64
        var words: String
        var at: UInt64
        var thread: pid_t
    }

    private struct Awaited {
        var words: String
        var latch: Latch<Void>
    }

    private struct State {
        var entries: [Entry] = []
        var awaited: [Awaited] = []
    }

    private let state = Lock(State())

    func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64) {
        let words = EventRecorder.words(for: event)
        let entry = Entry(transfer: transfer.id, words: words, at: nanoseconds, thread: threadNumber())
        let latches = state.withLock { state in
            state.entries.append(entry)
            return state.awaited.filter { $0.words == words }.map(\.latch)
        }
        for latch in latches { latch.set(()) }
    }

    var entries: [Entry] { state.withLock { $0.entries } }
    var words: [String] { entries.map(\.words) }

    func words(of transfer: EngineTransfer) -> [String] { entries.filter { $0.transfer == transfer.id }.map(\.words) }

    /// Waits until an event with this text has been recorded.
    func wait(for words: String) async {
        let latch = Latch<Void>()
        let isThere = state.withLock { state in
            state.awaited.append(Awaited(words: words, latch: latch))
            return state.entries.contains { $0.words == words }
        }
        if !isThere { await latch.value }
    }

    static func words(for event: EngineEvent) -> String {
        switch event {
        case .queued: "queued"
        case .resolved: "resolved"
        case .connected(_, let isReused): isReused ? "connected again" : "connected"
        case .secured(let version, _, let isResumed): "secured \(version)\(isResumed ? " resumed" : "")"
        case .sent(let count): "sent \(count)"
        case .informational(let head): "informational \(head.status)"
        case .head(let head): "head \(head.status)"
        case .received(let count): "received \(count)"
        case .paused: "paused"
        case .resumed: "resumed"
        case .restarted: "restarted"
        case .ended(let outcome): outcome.failure.map { "ended \(name(of: $0.reason))" } ?? "ended"
        }
    }

    private static func name(of reason: EngineFailure.Reason) -> String {
        switch reason {
        case .cancelled: "cancelled"
        case .closed: "closed"
        case .curl(let code, _): "curl \(code)"
        case .cannotResolve: "unresolved"
        case .notRetried: "unrepeated"
        default: "otherwise"
        }
    }
}

extension EventLoop {
    /// Returns when the loop has executed every record posted before.
    func round() async {
        let latch = Latch<Void>()
        if call({ _ in latch.set(()) }) { await latch.value }
    }
}

extension EngineBench {
    /// Creates a bench with a TLS server; its transfers use the host name `localhost`.
    static func secure(_ configuration: EngineConfiguration = EngineConfiguration()) throws -> EngineBench {
        let authority = try TestAuthority()
        let server = try MockServer(tls: authority.issue())
        return try EngineBench(configuration, server: server)
    }

    init(_ configuration: EngineConfiguration, server: MockServer) throws {
        self.server = server
        share = LoopShare(EventLoop(configuration: configuration))
        trust = TrustDomain(prepare: { true }, judge: { _ in nil })
        try trust.prepare()
        _ = CurlVersion.current
    }

    /// Creates a transfer after `change` has modified its plan.
    func transfer(
        _ path: String, method: String = "GET", upload: TransferPlan.Upload = .none,
        _ change: (inout TransferPlan) -> Void
    ) -> EngineTransfer {
        var plan = plan(path, method: method, upload: upload)
        if server.origin.hasPrefix("https") { plan.lead(to: plan.url, host: "localhost", isSecure: true) }
        change(&plan)
        return EngineTransfer(plan, on: share.loop)
    }
}
