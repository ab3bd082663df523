// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Testing

/// Saves in the background.
@Suite(.timeLimit(.minutes(5)))
struct DelayedSaveTests {
    /// An object whose saves a test ends one by one.
    private final class Document: Sendable {
        struct State {
            var changes = 0
            var saves = 0
            var results: [Bool]
            var changesDuringSave = 0
        }

        let state: Lock<State>
        let saved: AsyncStream<Int>
        private let report: AsyncStream<Int>.Continuation

        init(_ results: [Bool], changesDuringSave: Int = 0) {
            state = Lock(State(results: results, changesDuringSave: changesDuringSave))
            (saved, report) = AsyncStream.makeStream(of: Int.self)
        }

        deinit { report.finish() }

        func save() -> Bool {
            let (result, number) = state.withLock { state in
                let result = state.results.isEmpty ? true : state.results.removeFirst()
                state.saves += 1
                if result { state.changes = 0 }
                if state.changesDuringSave > 0 {
                    state.changesDuringSave -= 1
                    state.changes += 1
                }
                return (result, state.saves)
            }
            report.yield(number)
            return result
        }
    }

    private func schedule(retryDelay: Duration = .zero) -> DelayedSave<Document> {
        DelayedSave(
            delay: .zero, retryDelay: retryDelay, hasChanges: { $0.state.withLock { $0.changes > 0 } },
            save: { $0.save() })
    }

    @Test func changesAreSavedUntilNoneIsLeft() async {
        let document = Document([], changesDuringSave: 2)
        let schedule = schedule()
        document.state.withLock { $0.changes = 1 }
        for _ in 0..<10 { schedule.schedule(document) }
        var saves = document.saved.makeAsyncIterator()
        for number in 1...3 { #expect(await saves.next() == number) }
        #expect(document.state.withLock { $0.changes } == 0)
    }

    @Test func failureIsRepeated() async {
        let document = Document([false, false, true])
        document.state.withLock { $0.changes = 1 }
        schedule().schedule(document)
        var saves = document.saved.makeAsyncIterator()
        for number in 1...3 { #expect(await saves.next() == number) }
        #expect(document.state.withLock { $0.changes } == 0)
    }

    @Test func changeAfterAFailureDoesNotWaitForTheRetry() async {
        let document = Document([false])
        document.state.withLock { $0.changes = 1 }
        let schedule = schedule(retryDelay: .seconds(100_000))
        schedule.schedule(document)
        var saves = document.saved.makeAsyncIterator()
        #expect(await saves.next() == 1)
        // The failed save may not have ended yet; then the change is its own.
        while document.state.withLock({ $0.saves }) < 2 {
            schedule.schedule(document)
            await Task.yield()
        }
        #expect(await saves.next() == 2)
    }

    /// The object is saved once after the last reference to it, but a failure does not keep it alive.
    @Test func failureDoesNotKeepTheObject() async {
        let schedule = schedule(retryDelay: .seconds(100_000))
        var saves: AsyncStream<Int>
        do {
            let document = Document([false])
            document.state.withLock { $0.changes = 1 }
            saves = document.saved
            schedule.schedule(document)
        }
        var count = 0
        // The sequence ends when the object is released.
        for await _ in saves { count += 1 }
        #expect(count == 1)
    }
}
