// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

/// The rules of `LookUpQueue`, called without threads and with times that the test chooses.
@Suite("LookUpQueue")
struct LookUpQueueTests {
    private var queue = LookUpQueue()
    private var last: UInt64 = 0
    private let long = LookUpQueue.Limits().patience

    /// Asks for names and returns the names whose look-up starts.
    private mutating func ask(_ names: [String], for session: UInt64, at now: UInt64 = 0) -> [String] {
        names.flatMap { name in
            last += 1
            return started(queue.add(name, last, for: session, now: now))
        }
    }

    private func started(_ actions: [LookUpQueue.Action]) -> [String] {
        actions.compactMap { if case .start(let name) = $0 { name } else { nil } }
    }

    private func names(_ prefix: String, _ count: Int) -> [String] { (0..<count).map { "\(prefix)-\($0)" } }

    @Test mutating func sessionsUseAtMostTheirShareOfThreads() {
        #expect(ask(names("stuck", 64), for: 1) == names("stuck", 8))
        #expect(queue.count == 64)
        #expect(ask(["other"], for: 2) == ["other"], "another session starts at once")
        #expect(ask(names("more", 8), for: 2) == names("more", 3), "names never found get 12 of the 16 threads")
        #expect(ask(["third"], for: 3) == ["third"], "a session without a look-up always starts one")
    }

    @Test mutating func slowLookUpsAllowMoreThreadsUpToTheLimits() {
        _ = ask(names("stuck", 64), for: 1)
        #expect(started(queue.startPending(long - 1)) == [])
        #expect(started(queue.startPending(long)).count == 8)
        #expect(started(queue.startPending(2 * long)).count == 8)
        #expect(started(queue.startPending(3 * long)).count == 0, "one session gets at most 24 threads")
        for session in 2...9 as ClosedRange<UInt64> {
            _ = ask(names("stuck-\(session)", 64), for: session, at: 3 * long)
        }
        for time in 4...20 as ClosedRange<UInt64> { _ = queue.startPending(time * long) }
        #expect(ask(["late"], for: 10, at: 30 * long) == [], "names never found before get at most 60 threads")
    }

    @Test mutating func threadsAreReservedForNamesFoundBefore() {
        #expect(ask(["known"], for: 1) == ["known"])
        #expect(queue.finish("known", isFound: true, now: 0).waiters == [1])
        for session in 1...9 as ClosedRange<UInt64> {
            _ = ask(names("stuck-\(session)", 64), for: session)
            for time in 1...9 as ClosedRange<UInt64> { _ = queue.startPending(time * long) }
        }
        #expect(ask(["unknown"], for: 10, at: 10 * long) == [])
        #expect(ask(["known"], for: 10, at: 10 * long) == ["known"])
        #expect(ask(["known"], for: 1, at: 10 * long) == [], "its look-up is already running")
    }

    @Test mutating func namesFoundBeforeAreLookedUpFirst() {
        _ = ask(["known"], for: 1)
        _ = queue.finish("known", isFound: true, now: 0)
        _ = ask(names("stuck", 9), for: 1)
        #expect(ask(["known"], for: 1) == ["known"])
        let (waiters, next) = queue.finish("stuck-0", isFound: false, now: 1)
        #expect(waiters == [2] && next == "stuck-8")
        #expect(queue.finish("stuck-0", isFound: false, now: 1).waiters == [])
    }

    @Test mutating func freeThreadServesTheSessionWithTheFewestLookUps() {
        var limits = LookUpQueue.Limits()
        (limits.fast, limits.reserved, limits.fastPerSession, limits.maximum) = (4, 0, 4, 4)
        queue = LookUpQueue(limits)
        #expect(ask(names("a", 6), for: 1) == names("a", 4))
        #expect(ask(names("b", 3), for: 2) == [])
        #expect(queue.finish("a-0", isFound: true, now: 1).next == "b-0")
        #expect(queue.finish("a-1", isFound: true, now: 1).next == "b-1")
        #expect(queue.finish("b-0", isFound: true, now: 1).next == "b-2")
        #expect(queue.finish("a-2", isFound: true, now: 1).next == "a-4")
    }

    @Test mutating func sessionsShareTheLookUpOfAName() {
        _ = ask(names("stuck", 8), for: 1)
        #expect(ask(["shared"], for: 1) == [])
        #expect(ask(["shared"], for: 2) == ["shared"])
        #expect(ask(["shared"], for: 1) == [])
        #expect(queue.finish("shared", isFound: true, now: 1).waiters == [9, 10, 11])
        #expect(queue.finish("stuck-0", isFound: true, now: 1).next == nil, "session 1 no longer waits for it")
        #expect(queue.count == 7)
    }

    @Test mutating func withdrawnNamesAreNotLookedUp() {
        _ = ask(names("stuck", 8), for: 1)
        _ = ask(["waits", "waits", "stays"], for: 1)
        queue.withdraw("waits", 9)
        #expect(queue.count == 10)
        queue.withdraw("waits", 10)
        #expect(queue.count == 9)
        queue.withdraw("stuck-0", 1)
        queue.withdraw("unheard-of", 99)
        let (waiters, next) = queue.finish("stuck-0", isFound: false, now: 1)
        #expect(waiters == [] && next == "stays")
        queue.endWatch()
        #expect(!queue.isWatched)
    }

    /// The loop withdraws names under a lock that all sessions share, so withdrawing must be fast.
    @Test mutating func manyNamesAreWithdrawnInLinearTime() {
        _ = ask(names("stuck", 8), for: 1)
        for round in 0..<20 as Range<UInt64> {
            for number in 0..<1000 as Range<UInt64> {
                _ = queue.add("waits-\(number)", 1_000_000 * (round + 1) + number, for: 1, now: 0)
            }
            for number in 0..<999 as Range<UInt64> {
                queue.withdraw("waits-\(number)", 1_000_000 * (round + 1) + number)
            }
        }
        #expect(queue.count == 9 && queue.waitingEntryCount <= 2 * 1001 + 64)
        #expect(queue.finish("stuck-0", isFound: false, now: 1).next == "waits-999")
        #expect(queue.finish("stuck-1", isFound: false, now: 1).next == nil)
    }

    @Test mutating func nameIsRetriedAfterAFailedThreadStart() {
        #expect(ask(["slow"], for: 1) == ["slow"])
        #expect(ask(["second"], for: 1) == ["second"])
        #expect(queue.threadFailed(for: "second") == [])
        #expect(queue.watchIfNeeded() == [.watch] && queue.watchIfNeeded() == [])
        #expect(queue.startPending(1) == [.start("second")])
    }

    @Test mutating func watchLastsWhileNamesWait() {
        #expect(queue.add("first", 1, for: 1, now: 0) == [.start("first")])
        var actions: [LookUpQueue.Action] = []
        for number in 2...9 { actions += queue.add("name-\(number)", UInt64(number), for: 1, now: 0) }
        #expect(actions.last == .watch && actions.count == 8)
        #expect(queue.add("more", 10, for: 1, now: 0) == [])
        queue.endWatch()
        #expect(queue.isWatched)
        queue.endWatch(hasThread: false)
        #expect(queue.add("again", 11, for: 1, now: 0) == [.watch])
    }

    @Test mutating func nameWithoutAThreadWaitsForARunningThread() {
        #expect(ask(["first", "second"], for: 1) == ["first", "second"])
        #expect(queue.threadFailed(for: "second") == [])
        #expect(queue.finish("first", isFound: true, now: 1).next == "second")
        #expect(ask(["second"], for: 1) == [])
        #expect(queue.threadFailed(for: "second") == [2, 3], "no thread is left")
        #expect(queue.threadFailed(for: "second") == [] && queue.count == 0)
        #expect(ask(["third", "fourth"], for: 1) == ["third", "fourth"])
        queue.withdraw("fourth", 5)
        #expect(queue.threadFailed(for: "fourth") == [] && queue.count == 1)
    }

    @Test mutating func rememberedNamesAreLimited() {
        for name in names("found", 5000) {
            _ = ask([name], for: 1)
            _ = queue.finish(name, isFound: true, now: 0)
        }
        _ = ask(names("stuck", 8), for: 1)
        #expect(ask(["found-0"], for: 1) == [])
        #expect(ask(["found-4999"], for: 1) == ["found-4999"])
    }
}
