// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewMedia

/// Random readers, servers and faults; after each step the plan keeps its promises.
@Suite(.timeLimit(.minutes(5)))
struct FetchPlanModelTests {
    @Test(arguments: 1...60)
    func planServesEveryReaderAndFetchesNoByteTwice(_ seed: UInt64) throws {
        var model = PlanModel(seed)
        for step in 0..<400 {
            model.step()
            if let fault = model.fault { Issue.record("seed \(seed), step \(step): \(fault)") }
            if model.fault != nil { return }
        }
        model.finish()
        if let fault = model.fault { Issue.record("seed \(seed), at the end: \(fault)") }
    }
}

/// A server, a disk and readers around a plan.
struct PlanModel {
    /// A transfer as the server sees it.
    private struct Wire {
        var from: Int64
        var to: Int64?
        var isOpen = false
        var position: Int64
        var isHeld = false
        /// The version of the file on the server when the response began.
        var version: Int
        /// The generation of the plan when the transfer began.
        var generation: UInt64
    }

    private struct Client {
        /// The version of the bytes that the reader has received.
        var version: Int?
        var isWaiting = false
        var position: Int64
        let end: Int64?
    }

    private(set) var fault: String?
    private var chance: SeededGenerator
    private var plan: FetchPlan
    private let limits: FetchPlan.Limits
    private var version = 0
    private var length: Int64 = 1000
    /// Whether the server supports ranges and has a strong validator.
    private let mode: FetchPlan.Mode
    private let statesLength: Bool
    private var wires: [Int: Wire] = [:]
    private var clients: [Int: Client] = [:]
    /// The version of each stored byte.
    private var disk: [Int64: Int] = [:]
    /// The version of the file that the plan knows.
    private var known: Int?
    private var hasRemovedTransfers = false

    init(_ seed: UInt64) {
        var chance = SeededGenerator(seed)
        limits = FetchPlan.Limits(
            transfers: Int.random(in: 1...3, using: &chance), ahead: Int64.random(in: 1...300, using: &chance),
            join: Int64.random(in: 0...100, using: &chance))
        mode = [.ranged, .ranged, .whole, .unverified][Int.random(in: 0..<4, using: &chance)]
        statesLength = Bool.random(using: &chance)
        plan = FetchPlan(limits)
        self.chance = chance
    }

    // MARK: Steps

    mutating func step() {
        switch Int.random(in: 0..<20, using: &chance) {
        case 0, 1: add()
        case 2: if let id = clients.keys.sorted().randomElement(using: &chance) { remove(id) }
        case 3:
            // The file on the server changes rarely.
            if Int.random(in: 0..<6, using: &chance) == 0 {
                version += 1
                length = Int64.random(in: 1...1500, using: &chance)
            }
        case 4: if let id = wires.keys.sorted().randomElement(using: &chance) { end(id, isWhole: false) }
        case 5..<12: if let id = clients.keys.sorted().randomElement(using: &chance) { read(id) }
        default: if let id = wires.keys.sorted().randomElement(using: &chance) { advance(id) }
        }
        check()
    }

    /// Lets the server send and the readers read until all of them are at their end.
    mutating func finish() {
        for _ in 0..<20_000 where fault == nil {
            if clients.isEmpty { break }
            for id in clients.keys.sorted() { read(id) }
            for id in wires.keys.sorted() { advance(id) }
            check()
        }
        if fault == nil, !clients.isEmpty { fault = "readers starve: \(clients), \(plan)" }
        if fault == nil, !wires.isEmpty { fault = "transfers run without readers: \(wires)" }
    }

    private mutating func add() {
        guard clients.count < 6 else { return }
        let start = Int64.random(in: 0..<1200, using: &chance)
        let end = Bool.random(using: &chance) ? start + Int64.random(in: 0..<400, using: &chance) : nil
        let (id, actions) = plan.add(from: start, to: end)
        clients[id] = Client(position: start, end: end)
        perform(actions)
    }

    private mutating func remove(_ id: Int) {
        clients[id] = nil
        perform(plan.remove(reader: id))
    }

    private mutating func read(_ id: Int) {
        guard var client = clients[id], !client.isWaiting else { return }
        let (step, actions) = plan.take(id, atMost: Int64.random(in: 1...200, using: &chance))
        switch step {
        case .bytes(let range):
            if range.lowerBound != client.position || range.isEmpty { fault = "reader \(id) got \(range)" }
            for place in range {
                guard let stored = disk[place] else {
                    fault = "reader \(id) got byte \(place), which is not stored"
                    return
                }
                if client.version ?? stored != stored { fault = "reader \(id) got bytes of two versions" }
                client.version = stored
            }
            client.position = range.upperBound
            clients[id] = client
        case .wait:
            client.isWaiting = true
            clients[id] = client
        case .end, .changed:
            if step == .changed, client.version == nil { fault = "reader \(id) has not begun, and gets a change" }
            // The file may have been replaced after the reader was told that it ends.
            let isTold = plan.readers[id]?.isAtEnd ?? false
            if step == .end, !isTold, let length = plan.length, client.position < min(client.end ?? length, length) {
                fault = "reader \(id) ends at \(client.position) of \(length)"
            }
            perform(actions)
            return remove(id)
        }
        perform(actions)
    }

    /// The server sends the next part of a response.
    private mutating func advance(_ id: Int) {
        guard var wire = wires[id] else { return }
        if !wire.isOpen { return open(id) }
        if wire.isHeld { return }
        // A transfer that was cut stops at the cut, apart from a chunk on its way.
        let cut = plan.transfers[id]?.end ?? .max
        let end = min(cut, wire.to ?? .max, wire.version == version ? length : wire.to ?? wire.position)
        let count = min(Int64.random(in: 1...150, using: &chance), end - wire.position)
        if count <= 0 { return self.end(id, isWhole: true) }
        let range = wire.position..<wire.position + count
        if wire.generation == plan.generation {
            let twice = range.filter { disk[$0] != nil }
            if plan.mode == .ranged, let first = twice.first {
                fault = "byte \(first) is fetched twice by \(id)"
            }
            for place in range { disk[place] = wire.version }
        }
        wire.position = range.upperBound
        wires[id] = wire
        let (next, actions) = plan.received(id, range, of: wire.generation)
        switch next {
        case .more: break
        case .hold: wires[id]?.isHeld = true
        case .finished: wires[id] = nil
        }
        perform(actions)
    }

    /// The server answers a request.
    private mutating func open(_ id: Int) {
        guard var wire = wires[id] else { return }
        guard wire.generation == plan.generation else {
            wires[id] = nil
            return
        }
        wire.isOpen = true
        wire.version = version
        let isPart = plan.mode == .ranged && mode == .ranged && (wire.from > 0 || wire.to != nil)
        if let known, known == version, isPart {
            guard wire.from < length else {
                wires[id] = nil
                return perform(plan.foundLength(id, length))
            }
            // Sometimes a server sends less than the requested range.
            var end = min(wire.to ?? length, length)
            if Int.random(in: 0..<5, using: &chance) == 0 { end = wire.from + (end - wire.from + 1) / 2 }
            wire.to = end
            wires[id] = wire
            return perform(plan.openedPart(id, to: end, total: statesLength ? length : nil))
        }
        if known != nil, known != version || mode == .unverified { perform(plan.changed(keeping: id)) }
        guard plan.transfers[id] != nil else {
            wires[id] = nil
            return
        }
        known = version
        (wire.generation, wire.position, wire.to) = (plan.generation, 0, statesLength ? length : nil)
        wires[id] = wire
        perform(plan.openedWhole(id, total: statesLength ? length : nil, mode: mode))
        if wires[id] != nil, !plan.mayContinue(id) { wires[id]?.isHeld = true }
    }

    private mutating func end(_ id: Int, isWhole: Bool) {
        guard let wire = wires.removeValue(forKey: id) else { return }
        let isWhole = isWhole && wire.version == version
        if wire.generation == plan.generation || !isWhole { perform(plan.ended(id, isWhole: isWhole)) }
    }

    private mutating func perform(_ actions: [FetchPlan.Action]) {
        for action in actions {
            switch action {
            case .start(let id, let from, let to):
                wires[id] = Wire(
                    from: from, to: to, position: from, version: version, generation: plan.generation)
            case .stop(let id): wires[id] = nil
            case .resume(let id): wires[id]?.isHeld = false
            case .wake(let id), .fail(let id): clients[id]?.isWaiting = false
            case .discard: (disk, known) = ([:], nil)
            }
        }
    }

    // MARK: Promises

    private mutating func check() {
        if fault != nil { return }
        if plan.transfers.count > limits.transfers { fault = "\(plan.transfers.count) transfers run" }
        if Set(plan.transfers.keys) != Set(wires.keys) { fault = "transfers \(plan.transfers.keys), \(wires.keys)" }
        for place in plan.cached.ranges.flatMap({ [$0.lowerBound, $0.upperBound - 1] }) where disk[place] == nil {
            fault = "byte \(place) counts as stored"
        }
        for (id, client) in clients where client.isWaiting {
            guard plan.readers[id]?.waitsSince != nil else {
                fault = "reader \(id) waits, and the plan does not know"
                continue
            }
            if plan.transfers.isEmpty { fault = "reader \(id) waits without a transfer" }
            if let source = plan.readers[id]?.source, wires[source]?.isHeld == true {
                fault = "reader \(id) waits for a held transfer"
            }
        }
        for (id, transfer) in plan.transfers where !plan.readers.values.contains(where: { $0.source == id }) {
            fault = "no reader needs \(transfer)"
        }
    }
}
