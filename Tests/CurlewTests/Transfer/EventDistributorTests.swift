// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct EventDistributorTests {
    /// Returns the events that an observer of a transfer receives when an attempt is cancelled before its start.
    private func events(ofUnsentAttempt continues: Bool) async throws -> [TransferEvent.Kind] {
        let session = Session()
        let position = AttemptPosition(id: 7, ordinal: 2, offset: 1, continues: continues)
        let engine = try session.core.engineTransfer(for: "http://127.0.0.1:9/", at: position)
        let distributor = EventDistributor()
        let buffer = EventBuffer<TransferEvent> { _ in preconditionFailure("the buffer has space for two events") }
        distributor.add(buffer) { nil }
        engine.watch(distributor)
        engine.cancel()
        distributor.receive(
            TransferEvent(
                transfer: 7, label: nil, method: .get, url: "", attempt: 2, elapsed: .zero, kind: .finished(nil)))
        var kinds: [TransferEvent.Kind] = []
        while let event = await buffer.next() { kinds.append(event.kind) }
        return kinds
    }

    /// A distributor that was added too late for the metrics of the last attempt gets them with the end.
    @Test func endBringsMetricsThatWereMissed() async {
        let distributor = EventDistributor()
        let buffer = EventBuffer<TransferEvent> { _ in preconditionFailure("the buffer has space for two events") }
        distributor.add(buffer) { nil }
        func event(_ kind: TransferEvent.Kind) -> TransferEvent {
            TransferEvent(transfer: 7, label: nil, method: .get, url: "", attempt: 1, elapsed: .zero, kind: kind)
        }
        distributor.receiveEnd(event(.finished(nil))) { event(.metrics(TransferMetrics())) }
        guard case .metrics? = await buffer.next()?.kind, case .finished(nil)? = await buffer.next()?.kind,
            await buffer.next() == nil
        else { return #expect(Bool(false)) }
    }

    /// A further attempt that was never sent produces no events, for the session's observers either.
    @Test func unsentFurtherAttemptEmitsNoEvents() async throws {
        let kinds = try await events(ofUnsentAttempt: true)
        #expect(kinds.count == 1)
        guard case .finished(nil)? = kinds.first else { return #expect(Bool(false), "\(kinds)") }
    }

    @Test func unsentOnlyAttemptEmitsMetricsAndFinished() async throws {
        let kinds = try await events(ofUnsentAttempt: false)
        #expect(kinds.count == 2)
        guard case .metrics? = kinds.first else { return #expect(Bool(false), "\(kinds)") }
    }
}
