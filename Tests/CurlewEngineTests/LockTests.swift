// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import Glibc
import Testing

@Suite("Lock")
struct LockTests {
    @Test func lockExcludesFourContendingThreads() throws {
        let rounds = 50_000
        let count = Lock(0)
        let list = Lock<[Int]>([])
        let threads = try (0..<4).map { number in
            try TestThread {
                for round in 0..<rounds {
                    count.withLock { $0 += 1 }
                    if round % 1000 == 0 { list.withLock { $0.append(number) } }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(count.withLock { $0 } == 4 * rounds)
        let seen = list.withLock { $0 }
        #expect(seen.count == 4 * rounds / 1000)
        for number in 0..<4 { #expect(seen.count { $0 == number } == rounds / 1000) }
    }

    @Test func errorOfTheBodyIsThrownAndReleasesTheLock() {
        struct Refusal: Error, Equatable {}
        let lock = Lock(1)
        #expect(throws: Refusal()) {
            try lock.withLock { value throws(Refusal) in
                value = 2
                throw Refusal()
            }
        }
        #expect(lock.withLock { $0 } == 2)
    }

    @Test func valueIsReleasedWithTheLock() {
        final class Thing: Sendable {}
        weak var thing: Thing?
        do {
            let lock = Lock(Thing())
            thing = lock.withLock { $0 }
            #expect(thing != nil)
            withExtendedLifetime(lock) {}
        }
        #expect(thing == nil)
    }
}
