// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewMedia

/// The order of use, and the files that are removed.
@Suite struct MediaTableTests {
    private func key(_ number: Int) throws -> MediaKey {
        let digits = String(number, radix: 16)
        return try #require(MediaKey(String(repeating: "0", count: 64 - digits.utf8.count) + digits))
    }

    /// A table of three files with 1000 bytes each, used in order.
    private func table() throws -> MediaTable {
        var table = MediaTable()
        for number in 1...3 {
            let time = table.nextUse(now: 5)
            table.set(MediaTable.Item(bytes: 1000, usedAt: time), for: try key(number))
        }
        return table
    }

    @Test func sizeCountsRecords() throws {
        var table = try table()
        #expect(table.bytes == 3 * (1000 + MediaTable.overhead))
        table.set(MediaTable.Item(bytes: 10, usedAt: 1), for: try key(1))
        table.remove(try key(2))
        table.remove(try key(2))
        #expect(table.bytes == 1010 + 2 * MediaTable.overhead)
    }

    @Test func timesOfUseGrowEvenIfTheClockDoesNot() throws {
        var table = try table()
        #expect(try [1, 2, 3].map { table.items[try key($0)]?.usedAt } == [5, 6, 7])
        let times = [2, 100, 3].map { table.nextUse(now: $0) }
        #expect(times == [8, 100, 101])
    }

    @Test func leastRecentlyUsedFilesGoFirst() throws {
        var table = try table()
        table.touch(try key(1), at: table.nextUse(now: 0))
        let limit = 2 * (1000 + MediaTable.overhead)
        let (one, two, three) = (try key(1), try key(2), try key(3))
        #expect(table.evict(above: limit) == [two])
        #expect(table.evict(above: limit) == [])
        #expect(table.evict(above: 0) == [three, one])
        #expect(table.bytes == 0 && table.items.isEmpty)
    }

    @Test func usedAndBusyFilesStay() throws {
        var table = try table()
        let (used, busy, idle) = (try key(1), try key(2), try key(3))
        table.acquire(used)
        table.acquire(used)
        let removed = table.evict(above: 0) { $0 == busy }
        #expect(removed == [idle])
        #expect(table.release(used) == false)
        #expect(table.isInUse(used))
        #expect(table.release(used) == true)
        #expect(table.release(used) == false)
        #expect(table.evict(above: 0) == [used, busy])
    }

    @Test func onlyFilesInUseGrow() throws {
        var table = try table()
        table.grow(try key(1), to: 5000)
        let item = table.items[try key(1)]
        #expect(item?.bytes == 1000)
        table.acquire(try key(1))
        table.acquire(try key(9))
        table.grow(try key(1), to: 5000)
        table.grow(try key(9), to: 70)
        #expect(try [1, 9].map { table.items[try key($0)]?.bytes } == [5000, 70])
        #expect(table.bytes == 5000 + 2000 + 70 + 4 * MediaTable.overhead)
    }
}
