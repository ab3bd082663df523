// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport

@testable import CurlewEngine

/// A sink that records the reports of one transfer.
final class SinkRecorder: TransferSink {
    enum Report: Equatable, Sendable {
        case head(isFinal: Bool)
        case update
        case ended
    }

    private struct State {
        var reports: [Report] = []
        /// The counters at each report of an update.
        var counters: [Counters] = []
    }

    private let transfer: EngineTransfer
    private let onEnd: @Sendable () -> Void
    private let state = Lock(State())
    private let signal = Signal()

    /// Creates a recorder and attaches it.
    ///
    /// - Parameter onEnd: A closure that is called inside the report of the end.
    init(_ transfer: EngineTransfer, onEnd: @escaping @Sendable () -> Void = {}) {
        self.transfer = transfer
        self.onEnd = onEnd
        transfer.attach(self)
    }

    var isFinished: Bool { false }
    var reports: [Report] { state.withLock { $0.reports } }
    var counters: [Counters] { state.withLock { $0.counters } }

    func receivedHead(of transfer: EngineTransfer, isFinal: Bool) {
        state.withLock { $0.reports.append(.head(isFinal: isFinal)) }
        signal.send()
    }

    func receivedUpdate(of transfer: EngineTransfer) {
        let counters = transfer.snapshot.counters
        state.withLock { state in
            state.reports.append(.update)
            state.counters.append(counters)
        }
        signal.send()
    }

    func ended(_ transfer: EngineTransfer, _ outcome: EngineTransfer.Outcome) -> SmallList<Waiter> {
        onEnd()
        state.withLock { $0.reports.append(.ended) }
        signal.send()
        return SmallList()
    }

    /// Waits until a report has been recorded.
    func wait(for report: Report) async { await wait { $0.contains(report) } }

    /// Waits until the reports match.
    func wait(until matches: ([Report]) -> Bool) async {
        while true {
            let seen = signal.count
            if matches(reports) { return }
            await signal.waitUncancelled(after: seen)
        }
    }

    /// Waits for the head or for the end; any number of tasks may wait.
    func headed() async -> EngineTransfer.FirstResult {
        while true {
            let seen = signal.count
            switch transfer.requestHead() {
            case .isKnown:
                guard let result = transfer.firstResult else { preconditionFailure("the known result is missing") }
                return result
            case .isEnding: _ = await transfer.waitForEndUncancelled()
            case .isPending: await signal.waitUncancelled(after: seen)
            }
        }
    }
}
