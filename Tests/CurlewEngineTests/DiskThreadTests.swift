// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewShims
import Dispatch
import Glibc
import Testing

@testable import CurlewEngine

/// `DiskThread` with jobs that block until the test releases them, as on a file system that hangs.
@Suite("DiskThread", .timeLimit(.minutes(5)))
struct DiskThreadTests {
    @Test func hungPathDoesNotDelayOtherPaths() async {
        let disk = DiskThread("curlew-test", patience: 1)
        let (door, order) = (DispatchSemaphore(value: 0), Lock<[Int]>([]))
        let done = Latch<Bool>()
        let hangs = Latch<Bool>()
        #expect(
            disk.run(at: "/hung/a") {
                hangs.set(true)
                door.wait()
                order.withLock { $0.append(1) }
            })
        _ = await hangs.value
        #expect(disk.run(at: "/hung/b") { order.withLock { $0.append(2) } })
        #expect(
            disk.run(at: "/hung/a") {
                order.withLock { $0.append(3) }
                done.set(true)
            })
        for name in 0..<100 { #expect(await disk.value(at: "/whole-\(name)/a") { name } == name) }
        #expect(order.withLock { $0 } == [])
        door.signal()
        _ = await done.value
        #expect(order.withLock { $0 } == [1, 2, 3])
    }

    @Test func idleThreadsEnd() async {
        let disk = DiskThread("curlew-test", patience: 1)
        #expect(await disk.value { 7 } == 7)
        #expect(await waitUntil { disk.threads == 0 })
        #expect(await disk.value { 8 } == 8)
    }

    @Test func manyJobsOnManyPathsAllRunInOrder() async {
        let disk = DiskThread("curlew-test", maximum: 4, patience: 1)
        let sums = Lock<[String: [Int]]>([:])
        await withTaskGroup(of: Void.self) { group in
            for place in (0..<20).map({ "/p\($0)/f" }) {
                group.addTask {
                    for job in 0..<200 {
                        let isRun = disk.run(at: place) { sums.withLock { $0[place, default: []].append(job) } }
                        #expect(isRun)
                    }
                    _ = await disk.value(at: place) { true }
                }
            }
        }
        let found = sums.withLock { $0 }
        #expect(found.count == 20 && found.values.allSatisfy { $0 == Array(0..<200) })
        #expect(disk.threads <= 4)
    }

    /// A key log on a disk that does not respond keeps a bounded number of secrets in memory.
    @Test func keyLogDropsLinesWhenItsDiskHangs() async throws {
        let folder = "/proc/\(getpid())/no-such-place-\(curlew_next_id())"
        let (reasons, hangs, door) = (Lock<[String]>([]), Latch<Bool>(), DispatchSemaphore(value: 0))
        let log = KeyLog(path: folder + "/keys") { reason in reasons.withLock { $0.append(reason) } }
        #expect(
            DiskThread.keys.run(at: folder + "/keys") {
                hangs.set(true)
                door.wait()
            })
        _ = await hangs.value
        for _ in 0..<KeyLog.maximumWaiting { log.append("line") }
        #expect(reasons.withLock { $0 } == [])
        log.append("line")
        log.append("line")
        #expect(reasons.withLock { $0 } == ["its disk does not respond, so lines are dropped"])
        door.signal()
        _ = await DiskThread.keys.value(at: folder + "/keys") { true }
        #expect(reasons.withLock { $0.count } == 2, "the second reason is the missing folder")
    }

    /// A key log that other users may read or write is rejected, and so is a file that is not regular.
    @Test(
        arguments: [
            (S_IFREG | 0o600, 7, nil), (S_IFREG | 0o700, 7, nil), (S_IFREG | 0o640, 7, "other users can"),
            (S_IFREG | 0o602, 7, "other users can"), (S_IFREG | 0o600, 8, "it is a file of another user (uid 8)"),
            (S_IFIFO | 0o600, 7, "it is not a regular file"),
        ] as [(UInt32, UInt32, String?)]) func keyLogRejectsUnsafeFiles(mode: UInt32, owner: UInt32, text: String?)
    {
        let rejectionReason = KeyLog.rejectionReason(mode: mode, owner: owner, user: 7)
        #expect(text.map { rejectionReason?.hasPrefix($0) == true } ?? (rejectionReason == nil))
    }

    private func waitUntil(_ condition: () -> Bool) async -> Bool {
        let end = Monotonic.now() + 60_000_000_000
        while !condition() {
            if Monotonic.now() > end { return false }
            await Task.yield()
        }
        return true
    }
}
