// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewEngine

@Suite(.timeLimit(.minutes(5)))
struct MemoryCountersTests {
    private static let second: UInt64 = 1_000_000_000

    private func counters(
        high: Int = 0, max: Int = 0, oom: Int = 0, kills: Int = 0, stalled: Int? = nil
    ) -> MemoryCounters {
        MemoryCounters(
            events: "low 9\nhigh \(high)\nmax \(max)\noom \(oom)\noom_kill \(kills)\noom_group_kill 9\n",
            pressure: stalled.map { "some avg10=0.00 avg60=0.00 avg300=0.00 total=\($0)\nfull total=7\n" })
    }

    @Test func filesOfTheKernelAreParsed() {
        let read = counters(high: 1, max: 2, oom: 3, kills: 4, stalled: 5)
        #expect((read.high, read.max, read.oom, read.oomKill, read.stalled) == (1, 2, 3, 4, 5))
    }

    @Test(arguments: ["", "\n", "high", "high x\nmax -1\noom 99999999999999999999\noom_kill 1 2\n", "HIGH 4\n\u{0}"])
    func damagedCountersAreZero(_ text: String) {
        #expect(MemoryCounters(events: text, pressure: text) == MemoryCounters(events: "", pressure: nil))
    }

    @Test(arguments: ["", "full total=5\n", "some avg10=1.00\n", "some total=x\n", "sometotal=4"])
    func damagedPressureIsUnknown(_ text: String) {
        #expect(MemoryCounters(events: "", pressure: text).stalled == nil)
    }

    @Test func eventsReportLevels() {
        let none = counters()
        #expect(none.level(since: none, elapsed: Self.second) == .normal)
        #expect(counters(high: 1).level(since: none, elapsed: Self.second) == .warning)
        #expect(counters(max: 1).level(since: none, elapsed: Self.second) == .normal)
        #expect(counters(max: 1, oom: 1).level(since: none, elapsed: Self.second) == .critical)
        #expect(counters(kills: 1).level(since: none, elapsed: Self.second) == .critical)
        #expect(none.level(since: counters(high: 1, max: 1, oom: 1, kills: 1), elapsed: Self.second) == .normal)
    }

    /// A group that is full of page cache reaches its limit all the time.
    @Test func reachedLimitCountsOnlyWithStalls() {
        let earlier = counters(stalled: 1_000_000)
        // 7.5 % of two seconds are 150 ms.
        for (stalled, level) in [(1_000_000, MemoryLevel.normal), (1_149_999, .normal), (1_150_000, .warning)] {
            #expect(counters(max: 1, stalled: stalled).level(since: earlier, elapsed: 2 * Self.second) == level)
            #expect(counters(high: 1, stalled: stalled).level(since: earlier, elapsed: 2 * Self.second) == level)
        }
        #expect(counters(oom: 1, stalled: 1_000_000).level(since: earlier, elapsed: Self.second) == .critical)
        #expect(counters(stalled: 9_000_000).level(since: earlier, elapsed: Self.second) == .normal, "no event")
        // Without stall times, only the limit that slows the group down counts.
        #expect(counters(high: 1, stalled: 5).level(since: earlier, elapsed: Self.second) == .warning, "a new counter")
        #expect(counters(high: 1).level(since: earlier, elapsed: Self.second) == .warning)
        #expect(counters(max: 1).level(since: earlier, elapsed: Self.second) == .normal)
    }

    @Test func countersNeverFall() {
        var known = counters(high: 5, max: 5, oom: 5, kills: 5, stalled: 5)
        #expect(!counters(stalled: 9).hasEvents(since: known))
        for newer in [counters(high: 6), counters(max: 6), counters(oom: 6), counters(kills: 6)] {
            #expect(newer.hasEvents(since: known))
        }
        known.advance(to: counters(high: 6, stalled: 9))
        #expect(known == counters(high: 6, max: 5, oom: 5, kills: 5, stalled: 9))
    }

    @Test func triggersEndWithAByteThatTheKernelOverwrites() {
        #expect(MemoryTrigger.warning.bytes == Array("some 150000 2000000\0".utf8))
        #expect(MemoryTrigger.critical.bytes == Array("full 100000 2000000\0".utf8))
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ServiceVariablesTests {
    static let rows: [(watch: String?, write: String?, expected: ServiceVariables)] = [
        (nil, nil, .unset),
        (nil, "eA==", .unset),
        ("", nil, .unset),
        ("/dev/null", "eA==", .off),
        ("/run/x", nil, .watch(path: "/run/x", bytes: [])),
        ("/run/x", "c29tZSAyMDAwMDAgMjAwMDAwMAA=", .watch(path: "/run/x", bytes: Array("some 200000 2000000\0".utf8))),
        ("run/x", nil, .invalid("MEMORY_PRESSURE_WATCH: the path is relative")),
        ("/run/x", "c29tZ", .invalid("MEMORY_PRESSURE_WRITE: the value is not Base64")),
        ("/run/x", "c2.t", .invalid("MEMORY_PRESSURE_WRITE: the value is not Base64")),
    ]

    @Test(arguments: ServiceVariablesTests.rows.indices)
    func variablesOfSystemdAreInterpreted(_ index: Int) {
        let row = Self.rows[index]
        let variables = ServiceVariables { $0 == "MEMORY_PRESSURE_WATCH" ? row.watch : row.write }
        #expect(variables == row.expected)
    }

    @Test(
        arguments: [
            ("", []), ("eA==", [0x78]), ("eHk=", [0x78, 0x79]), ("eHl6", [0x78, 0x79, 0x7A]),
            ("+/+/", [0xFB, 0xFF, 0xBF]),
            ("AZaz", [0x01, 0x96, 0xB3]), ("0189", [0xD3, 0x5F, 0x3D]),
        ] as [(String, [UInt8])])
    func base64IsDecoded(_ text: String, _ bytes: [UInt8]) {
        #expect(ServiceVariables.base64(text) == bytes)
    }

    @Test(arguments: ["x", "eA=", "e===", "====", "e=A=", "eA==\n", "-_-_", "ä=="])
    func otherTextIsNotBase64(_ text: String) {
        #expect(ServiceVariables.base64(text) == nil)
    }
}
