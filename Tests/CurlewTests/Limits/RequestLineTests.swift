// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// Who goes when, at times that the test chooses.
@Suite struct RequestLineTests {
    private let tenASecond = RequestLine.Rule(pace: RequestLine.Pace(interval: .milliseconds(100), burst: 3))
    private let hour = Duration.seconds(3600)

    /// Whether a request goes at once.
    private func goes(_ line: inout RequestLine, _ rule: RequestLine.Rule, at time: Duration) -> Bool {
        if case .go = line.enter(rule, limit: .zero, now: time) { true } else { false }
    }

    @Test func aBurstAndThenOneEachInterval() {
        var line = RequestLine()
        let times = (0..<1000).filter { goes(&line, tenASecond, at: .milliseconds($0)) }
        #expect(times == [0, 1, 2] + (1...9).map { $0 * 100 })
        #expect((0..<5).filter { _ in goes(&line, tenASecond, at: .seconds(60)) }.count == 3, "a pause earns a burst")
    }

    @Test func withoutAPaceAllGo() {
        var line = RequestLine()
        #expect((0..<100).allSatisfy { _ in goes(&line, RequestLine.Rule(), at: .zero) })
        #expect(!line.isInUse)
    }

    @Test func holdsAreKeptAndDoNotShrink() {
        var line = RequestLine()
        line.hold(for: .seconds(9), now: .zero)
        line.hold(for: .seconds(3), now: .seconds(1))
        #expect(!goes(&line, RequestLine.Rule(), at: .seconds(8)))
        #expect(goes(&line, RequestLine.Rule(), at: .seconds(9)))
        line.hold(for: .seconds(1 << 40), now: .zero)
        guard case .tooLong(let wait) = line.enter(RequestLine.Rule(), limit: .seconds(60), now: .zero) else {
            Issue.record("it waits for ever")
            return
        }
        #expect(wait == hour)
    }

    @Test func whoWouldWaitTooLongDoesNot() {
        var line = RequestLine()
        for _ in 0..<3 { #expect(goes(&line, tenASecond, at: .zero)) }
        var waiting = 0
        while case .wait = line.enter(tenASecond, limit: .seconds(1), now: .zero) { waiting += 1 }
        #expect(waiting == 10 && line.count == 10, "a line is no longer than can be waited for")
    }

    /// Any coming, going and giving up, against what must hold of it.
    @Test(arguments: 0..<50) func anyCourse(seed: UInt64) {
        var chance = SeededChance(seed)
        let pace = RequestLine.Pace(
            interval: .milliseconds(Int.random(in: 1...50, using: &chance)),
            burst: Int.random(in: 1...4, using: &chance))
        let rule = RequestLine.Rule(pace: Bool.random(using: &chance) ? pace : nil)
        var (line, now, heldUntil) = (RequestLine(), Duration.zero, Duration.zero)
        var waiting: [UInt64] = []
        var went: [Duration] = []
        for _ in 0..<2000 {
            switch Int.random(in: 0..<10, using: &chance) {
            case 0..<4:
                let isFree = waiting.isEmpty
                switch line.enter(rule, limit: hour, now: now) {
                case .go:
                    #expect(isFree, "nobody overtakes")
                    went.append(now)
                    #expect(now >= heldUntil)
                case .wait(let ticket): waiting.append(ticket)
                case .tooLong: Issue.record("an hour is long")
                }
            case 4 where !waiting.isEmpty:
                _ = line.leave(waiting.remove(at: Int.random(in: 0..<waiting.count, using: &chance)))
            case 5 where Int.random(in: 0..<20, using: &chance) == 0:
                line.hold(for: .milliseconds(300), now: now)
                heldUntil = max(heldUntil, now + .milliseconds(300))
            case 6..<10 where !waiting.isEmpty:
                #expect(line.isFirst(waiting[0]) && !waiting.dropFirst().contains(where: line.isFirst))
                let luck = Double.random(in: 0...1, using: &chance)
                switch line.step(waiting[0], rule, deadline: now + hour, now: now, chance: luck) {
                case .go:
                    went.append(now)
                    waiting.removeFirst()
                    #expect(now >= heldUntil)
                case .wait(let rest): now += min(rest, .milliseconds(Int.random(in: 1...60, using: &chance)))
                case .tooLong: Issue.record("an hour is long")
                }
            default: now += .milliseconds(Int.random(in: 0...5, using: &chance))
            }
            #expect(line.count == waiting.count && line.isInUse == !waiting.isEmpty)
        }
        #expect(went.count > 50)
        if let pace = rule.pace {
            for (index, time) in went.enumerated() where index >= pace.burst {
                // Of any burst + 1 in a row the last one waits for the first one's interval.
                #expect(time - went[index - pace.burst] >= pace.interval, "\(pace) at \(index)")
            }
        }
    }

    @Test func onlySoManyOriginsAreRemembered() {
        var table = OriginTable<RequestLine>()
        guard case .go = table.change("held", { $0.enter(RequestLine.Rule(), limit: hour, now: .zero) }) else {
            Issue.record("it is held")
            return
        }
        table.change("held") { $0.hold(for: .seconds(9), now: .zero) }
        _ = table.change("held") { $0.enter(RequestLine.Rule(), limit: hour, now: .zero) }
        table.change("old") { $0.hold(for: .seconds(9), now: .zero) }
        for number in 0..<1000 { table.change("\(number)") { $0.hold(for: .seconds(1), now: .zero) } }
        #expect(table.count == OriginTable<RequestLine>.capacity)
        #expect(table.change("held") { $0.count } == 1, "somebody waits there")
        var old = table.change("old") { $0 }
        #expect(goes(&old, RequestLine.Rule(), at: .zero), "it was forgotten, and is trusted anew")
    }

    @Test func theOriginMetLastIsRememberedWhateverElseIs() {
        var table = OriginTable<RequestLine>()
        let rule = RequestLine.Rule(pace: RequestLine.Pace(interval: .seconds(1), burst: 1))
        for number in 0..<OriginTable<RequestLine>.capacity {
            for _ in 0..<2 { _ = table.change("\(number)") { $0.enter(rule, limit: hour, now: .zero) } }
        }
        guard case .go = table.change("new", { $0.enter(rule, limit: hour, now: .zero) }),
            case .wait = table.change("new", { $0.enter(rule, limit: hour, now: .zero) })
        else { return #expect(Bool(false), "the second one goes unlimited") }
    }
}
