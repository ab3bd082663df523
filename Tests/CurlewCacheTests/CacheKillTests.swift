// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Glibc
import Testing

@testable import CurlewCache

/// Kills a process that uses a store, as `kill -9` does, and opens the store afterwards.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct CacheKillTests {
    /// An operation of the killed process, and what the store has of one number before and after it.
    private struct Operation: Sendable {
        let command: String
        let number: Int
        let before: [String]
        let after: [String]
    }

    /// How a killed process ended, and what stores found afterwards.
    private struct Outcome: Sendable {
        let end: CacheProcess.End
        let items: [CacheItem]
        /// The items of a store that was open all the time; nil without such a store.
        let bystander: [CacheItem]?

        func versions(_ number: Int) -> [String] { items.filter { $0.number == number }.map(\.description) }

        /// Checks that an operation is done completely or not at all, and that it is done once the process knew it.
        func expect(_ operation: Operation) {
            let found = versions(operation.number)
            let isKnown = end.result(of: operation.command) == "ok"
            #expect(
                found == operation.after || !isKnown && found == operation.before,
                "\(operation.command): \(found) after \(end.lines)")
        }
    }

    /// A moment to kill the process, and whether a store of this process is open all the time, so that the index is not
    /// recovered by its first user.
    private struct Moment: Sendable {
        let step: Int
        var isTorn = false
        var hasBystander = false

        var environment: [String: String] {
            ["KILL_AT": "\(step)"].merging(isTorn ? ["KILL_TORN": "1"] : [:]) { $1 }
        }
    }

    // MARK: Scenes

    /// Makes a directory with a store of items 0, 1, …, of 10,000 bytes each.
    private func prepared(_ count: Int) async throws -> TestDirectory {
        let directory = TestDirectory()
        let end = try await CacheProcess.run(
            directory.path + "/store", ["open"] + (0..<count).map { "add \($0) 1 10000" } + ["close"])
        #expect(end.status == 0 && end.lines.allSatisfy { $0.hasSuffix(": ok") }, "\(end)")
        return directory
    }

    /// Runs commands on a copy of a store, in a process that may be killed, and checks the store.
    private static func run(
        _ script: [String], on prepared: String, _ environment: [String: String], hasBystander: Bool
    ) async throws -> Outcome {
        let directory = TestDirectory()
        let path = directory.path + "/store"
        if DirectoryNames.exists(prepared) { try FileManager.default.copyItem(atPath: prepared, toPath: path) }
        let limit = ByteCount.bytes(CacheProcess.limit)
        let early = try await hasBystander ? DiskCacheStore(path, limit: limit) : nil
        if let early { _ = try await early.entries(.all) }
        let end = try await CacheProcess.run(path, script, environment: environment)
        #expect(end.status == 0 || end.status == -SIGKILL, "\(end)")
        #expect(!end.lines.contains { $0.contains(": failed") }, "\(end)")
        let bystander = try await early?.checkedItems(isAlone: false)
        let store = try await DiskCacheStore(path, limit: limit)
        let items = try await store.checkedItems()
        // The store can still be written.
        let late = CacheItem(99, 1, 500)
        try await store.put(late)
        #expect(try await store.entries(.key(late.entry.key)).compactMap { CacheItem($0) } == [late])
        return Outcome(end: end, items: items, bystander: bystander)
    }

    /// Runs commands once for each step of them, killed at that step, and checks each outcome.
    ///
    /// - Parameters:
    ///   - minimum: The number of steps that there are at least; fewer show that steps of SQLite are not counted.
    ///   - hasBystander: Whether a store of this process is open all the time.
    ///   - isThorough: Whether some steps are also killed after half of their bytes, and with a bystander.
    private static func killAtEveryStep(
        of script: [String], on prepared: String, minimum: Int, hasBystander: Bool = false, isThorough: Bool = false,
        check: @escaping @Sendable (Outcome) -> Void
    ) async throws {
        let whole = try await run(script, on: prepared, [:], hasBystander: hasBystander)
        #expect(whole.end.status == 0)
        check(whole)
        let steps = whole.end.steps
        try #require(steps >= minimum)
        // The last moments are after the end of the process.
        var moments = (1...steps + 3).map { Moment(step: $0, hasBystander: hasBystander) }
        if isThorough {
            for step in 1...steps {
                if step % 3 == 0 { moments.append(Moment(step: step, isTorn: true)) }
                if step % 2 == 1 { moments.append(Moment(step: step, hasBystander: true)) }
            }
        }
        let killed = Lock<Set<Int>>([])
        try await moments.forEachConcurrent(limit: 3) { moment in
            let outcome = try await run(
                script, on: prepared, moment.environment, hasBystander: moment.hasBystander)
            if outcome.end.status != 0 {
                killed.withLock { _ = $0.insert(moment.step) }
            } else {
                // A body needs fewer writes on an idle machine: the process has ended before that step.
                #expect((1..<moment.step).contains(outcome.end.steps))
            }
            check(outcome)
        }
        #expect(killed.withLock { $0.count } >= minimum)
    }

    // MARK: Every step

    @Test func killAtEveryStepLosesNoOtherEntry() async throws {
        let directory = try await prepared(10)
        let operations = [
            Operation(command: "add 10 1 300000", number: 10, before: [], after: ["10.1.0"]),
            Operation(command: "replace 9 2 5000", number: 9, before: ["9.1.0"], after: ["9.2.0"]),
            Operation(command: "update 8 1", number: 8, before: ["8.1.0"], after: ["8.1.1"]),
            Operation(command: "remove 6", number: 6, before: ["6.1.0"], after: []),
            // Evicts the entries that were not used for the longest time.
            Operation(command: "add 11 1 60000", number: 11, before: [], after: ["11.1.0"]),
        ]
        var script = ["open"] + operations.map(\.command) + ["close", "open", "steps"]
        script.insert("use 7", at: 4)
        try await Self.killAtEveryStep(
            of: script, on: directory.path + "/store", minimum: 60, isThorough: true
        ) { outcome in
            for operation in operations { outcome.expect(operation) }
            for number in [4, 5, 7] { #expect(outcome.versions(number) == ["\(number).1.0"]) }
            let old = (0...3).count { outcome.versions($0) == ["\($0).1.0"] }
            #expect(outcome.versions(11).isEmpty ? old == 4 : old < 4, "\(outcome.items)")
            if let bystander = outcome.bystander { #expect(bystander == outcome.items) }
        }
    }

    /// A removed response must not come back, even if it was the last one.
    @Test func killWhileAllIsRemovedBringsNothingBack() async throws {
        let directory = try await prepared(3)
        try await Self.killAtEveryStep(
            of: ["open", "remove 0 1 2", "close", "open", "steps"], on: directory.path + "/store", minimum: 10,
            hasBystander: true
        ) { outcome in
            #expect(outcome.bystander == outcome.items, "after \(outcome.end.lines)")
            #expect(outcome.items.isEmpty || outcome.items.count == 3)
            if outcome.end.result(of: "remove 0 1 2") == "ok" { #expect(outcome.items.isEmpty) }
        }
    }

    @Test func killWhileAStoreIsCreatedLeavesAUsableOne() async throws {
        try await Self.killAtEveryStep(
            of: ["open", "add 1 1 1000", "close", "open", "steps"], on: "/nonexistent", minimum: 30
        ) { outcome in
            outcome.expect(Operation(command: "add 1 1 1000", number: 1, before: [], after: ["1.1.0"]))
        }
    }

    @Test func killWhileADamagedIndexIsMadeAgainLosesNoEntry() async throws {
        let directory = try await prepared(4)
        let index = directory.path + "/store/index.sqlite"
        try Data(repeating: 0x78, count: 20_000).write(to: URL(filePath: index))
        try await Self.killAtEveryStep(
            of: ["open", "close", "open", "steps"], on: directory.path + "/store", minimum: 30
        ) { outcome in
            #expect(outcome.items.list == "0.1.0 1.1.0 2.1.0 3.1.0")
        }
    }

    // MARK: Other moments

    /// Unlike at a step, the process may die while it changes the shared memory of the index.
    @Test func killAtRandomMomentsLeavesNoTornEntry() async throws {
        let directory = try await prepared(10)
        let kills = Lock(0)
        try await (0..<16).forEachConcurrent(limit: 3) { index in
            let after = 40_000 + index * 30_000
            let outcome = try await Self.run(
                ["open", "random \(index + 1) 1000000"], on: directory.path + "/store", ["KILL_AFTER": "\(after)"],
                hasBystander: index % 2 == 0)
            if outcome.end.status == -SIGKILL { kills.withLock { $0 += 1 } }
            if let bystander = outcome.bystander { #expect(bystander == outcome.items, "\(after) µs") }
        }
        #expect(kills.withLock { $0 } == 16)
    }

    @Test func fileOfAKilledWriterIsRemovedWhenTheStoreOpens() async throws {
        let directory = try await prepared(1)
        let path = directory.path + "/store"
        let process = try CacheProcess(path)
        #expect(try await process.ask("open") == "ok")
        #expect(try await process.ask("hold 1 1 600000") == "ok")
        // A store that opens meanwhile leaves the file alone.
        _ = try await DiskCacheStore(path)
        #expect(try DirectoryNames.inFolder(path + "/bodies").count { $0.hasSuffix(".new") } == 1)
        #expect(await process.killNow().status == -SIGKILL)
        #expect(try DirectoryNames.inFolder(path + "/bodies").count == 2)
        let store = try await DiskCacheStore(path)
        #expect(try await store.checkedItems().list == "0.1.0")
        #expect(try DirectoryNames.inFolder(path + "/bodies").count == 1)
    }
}

/// The names in directories.
enum DirectoryNames {
    static func inFolder(_ path: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: path)
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
