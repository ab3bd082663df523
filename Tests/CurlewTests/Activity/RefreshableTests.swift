// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Refreshes, one at a time (UI-06).
@Suite(.timeLimit(.minutes(5)))
struct RefreshableTests {
    private struct Failure: Error {}

    @Test func refreshRunsTheClosureAndShowsIt() async throws {
        let list = Refreshable()
        var iterator = list.makeAsyncIterator()
        #expect(await iterator.next() == false)
        let (began, gate) = (Gate(), Gate())
        let refresh = Task {
            await list.refresh {
                began.open()
                await gate.wait()
            }
        }
        await began.wait()
        #expect(list.isRefreshing)
        #expect(await iterator.next() == true)
        gate.open()
        #expect(await refresh.value && !list.isRefreshing)
        #expect(await iterator.next() == false)
    }

    @Test func failureEndsTheRefresh() async {
        let list = Refreshable()
        await #expect(throws: Failure.self) {
            try await list.refresh { () async throws(Failure) in throw Failure() }
        }
        #expect(!list.isRefreshing)
        #expect(await list.refresh {})
    }

    @Test func secondRefreshOfACopyWaitsForTheFirst() async {
        let list = Refreshable()
        let (began, gate) = (Gate(), Gate())
        let first = Task { [list] in
            await list.refresh {
                began.open()
                await gate.wait()
            }
        }
        await began.wait()
        let second = Task { [list] in await list.refresh { Issue.record("a second refresh ran") } }
        await list.waitUntilCallersWait(1)
        gate.open()
        #expect(await first.value)
        #expect(await !second.value)
        #expect(!list.isRefreshing)
        #expect(await list.refresh {})
    }

    @Test func cancelledWaiterReturnsAndTheRefreshContinues() async {
        let list = Refreshable()
        let (began, gate) = (Gate(), Gate())
        let first = Task {
            await list.refresh {
                began.open()
                await gate.wait()
            }
        }
        await began.wait()
        let second = Task { await list.refresh { Issue.record("a second refresh ran") } }
        second.cancel()
        #expect(await !second.value)
        #expect(list.isRefreshing)
        gate.open()
        #expect(await first.value)
    }

    @Test func followedTransfersAreShown() async throws {
        let scene = try ActivityScene(2)
        let session = Session()
        let list = Refreshable()
        let transfers = (0..<2).map { session.transfer(scene.request($0)) }
        for transfer in transfers { list.follow(transfer) }
        #expect(!list.isRefreshing)
        for number in 0..<2 {
            transfers[number].start()
            #expect(list.isRefreshing)
        }
        for number in 0..<2 {
            #expect(list.isRefreshing)
            scene.gate(number).open()
            _ = try await transfers[number].value
        }
        #expect(!list.isRefreshing)
        // A followed transfer does not delay a refresh.
        #expect(await list.refresh {})
    }
}
