// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewEngine
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PathMonitorTests {
    @Test func currentPathIsDeliveredAtOnce() async throws {
        let session = Session()
        var iterator = session.path.makeAsyncIterator()
        let path = try #require(await iterator.next())
        #expect(path.interfaces.contains { $0.kind == .loopback && $0.isRunning && $0.hasAddress })
        #expect(path.isSatisfied == (path.outward != nil))
        #expect(path.description == (path.outward.map { "connected by \($0.name) (\($0.kind))" } ?? "not connected"))
    }

    @Test func cancellationEndsPathUpdates() async {
        let observer = Task {
            var count = 0
            for await _ in Session.shared.path { count += 1 }
            return count
        }
        observer.cancel()
        _ = await observer.value
    }
}
