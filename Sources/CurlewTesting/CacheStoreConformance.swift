// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import FoundationEssentials

/// Tests whether a store of responses fulfils the contract of `CacheStore`.
///
/// ```swift
/// @Test func storeConforms() async throws {
///     let violations = try await CacheStoreConformance.violations { try await RedisStore.empty(connection) }
///     #expect(violations.isEmpty)
/// }
/// ```
public enum CacheStoreConformance {
    /// Runs all checks, each with a store of its own.
    ///
    /// - Parameter make: Returns an empty store; called once for each check.
    /// - Returns: A sentence for each violation; empty if the store conforms.
    /// - Throws: The errors of the store.
    public static func violations(_ make: () async throws -> any CacheStore) async throws -> [String] {
        var violations: [String] = []
        for check in Self.checks {
            let run = Run(try await make())
            try await check(run)
            violations += await run.violations
        }
        return violations
    }

    private static let checks: [@Sendable (Run) async throws -> Void] = [
        empty, stored, discarded, replaced, updated, removed, selected, ranges, large, concurrent, limited,
    ]

    /// A check of one store.
    private actor Run {
        let store: any CacheStore
        private(set) var violations: [String] = []

        init(_ store: any CacheStore) { self.store = store }

        func require(_ condition: Bool, _ violation: String) { if !condition { violations.append(violation) } }
    }

    private static func entry(
        _ path: String, _ fields: HeaderFields = [:], origin: String = "https://example.com", tags: Set<String> = []
    ) -> HTTPCache.Entry {
        let (url, time) = (origin + path, Date(timeIntervalSince1970: 1_767_225_600.25))
        return HTTPCache.Entry(
            key: url, url: url, head: ResponseHead(status: .ok, fields: fields), fields: fields, requestedAt: time,
            receivedAt: time, tags: tags)
    }

    private static func write(
        _ entry: HTTPCache.Entry, _ body: [UInt8], to store: any CacheStore, replacing: [HTTPCache.Entry.ID] = []
    ) async throws -> HTTPCache.Entry {
        var entry = entry
        let writer = try await store.writer(for: entry, expecting: nil)
        for start in stride(from: 0, to: body.count, by: 60_000) {
            try await writer.write(ByteChunk(body[start..<min(start + 60_000, body.count)]))
        }
        entry.size = Int64(body.count)
        try await writer.finish(entry, replacing: replacing)
        return entry
    }

    private static func read(
        _ entry: HTTPCache.Entry, _ range: Range<Int64>, from store: any CacheStore
    ) async throws -> [UInt8]? {
        switch try await store.body(of: entry, range) {
        case nil: return nil
        case .data(let data)?: return Array(data)
        case .chunks(let chunks)?: return try await collect(chunks)
        }
    }

    private static func collect<Chunks: AsyncSequence>(_ chunks: Chunks) async throws -> [UInt8]
    where Chunks.Element == ByteChunk {
        var bytes: [UInt8] = []
        for try await chunk in chunks { bytes += chunk }
        return bytes
    }

    private static func pattern(_ count: Int, seed: UInt64) -> [UInt8] {
        PatternBody(seed: seed, length: count).bytes(in: 0..<count)
    }

    // MARK: Checks

    @Sendable private static func empty(_ run: Run) async throws {
        let store = run.store
        await run.require(try await store.entries(.all).isEmpty, "A new store has entries.")
        await run.require(try await store.usage().count == 0, "A new store counts entries.")
        await run.require(try await store.remove([1]) == 0, "The removal of an unknown id is counted.")
        await run.require(store.maximumBodySize > 0, "The store takes no bodies.")
    }

    @Sendable private static func stored(_ run: Run) async throws {
        let (store, body) = (run.store, pattern(100_000, seed: 1))
        let new = entry("/a?b=ä", [.etag: "\"1\"", "X-Text": "ä, \"b\""], tags: ["t"])
        let writer = try await store.writer(for: new, expecting: 100_000)
        try await writer.write(ByteChunk(body[..<50_000]))
        await run.require(try await store.entries(.all).isEmpty, "An entry is visible before its body is complete.")
        try await writer.write(ByteChunk(body[50_000...]))
        var finished = new
        finished.size = 100_000
        try await writer.finish(finished, replacing: [])
        await run.require(try await store.entries(.key(new.key)) == [finished], "The store changes an entry.")
        await run.require(try await store.entries(.key(new.key + "x")).isEmpty, "Another key finds the entry.")
        await run.require(
            try await read(finished, 0..<100_000, from: store) == body, "The store changes the bytes of a body.")
        let usage = try await store.usage()
        await run.require(usage.count == 1 && usage.bytes >= 100_000, "The usage does not count the body.")
        let nothing = try await write(entry("/empty"), [], to: store)
        await run.require(try await store.entries(.key(nothing.key)) == [nothing], "An entry without a body is lost.")
    }

    @Sendable private static func discarded(_ run: Run) async throws {
        let writer = try await run.store.writer(for: entry("/"), expecting: nil)
        try await writer.write(ByteChunk([1, 2, 3]))
        await writer.discard()
        await run.require(try await run.store.entries(.all).isEmpty, "A discarded body leaves an entry.")
        await run.require(try await run.store.usage().bytes == 0, "A discarded body is counted.")
    }

    @Sendable private static func replaced(_ run: Run) async throws {
        let first = try await write(entry("/"), [1], to: run.store)
        let second = try await write(entry("/"), [2, 2], to: run.store, replacing: [first.id])
        await run.require(try await run.store.entries(.key(first.key)) == [second], "A replaced entry stays.")
        await run.require(try await read(first, 0..<1, from: run.store) == nil, "A replaced body stays.")
        let third = try await write(entry("/"), [3], to: run.store)
        let ids = Set(try await run.store.entries(.key(first.key)).map(\.id))
        await run.require(ids == [second.id, third.id], "A key does not keep several entries.")
    }

    @Sendable private static func updated(_ run: Run) async throws {
        var entry = try await write(entry("/"), [1, 2], to: run.store)
        entry.fields[.etag] = "\"2\""
        entry.receivedAt += 10
        try await run.store.update(entry)
        await run.require(try await run.store.entries(.key(entry.key)) == [entry], "An update is lost.")
        await run.require(try await read(entry, 0..<2, from: run.store) == [1, 2], "An update loses the body.")
        try await run.store.update(Self.entry("/other"))
        await run.require(try await run.store.usage().count == 1, "The update of an unknown entry adds it.")
    }

    @Sendable private static func removed(_ run: Run) async throws {
        let first = try await write(entry("/1"), [1], to: run.store)
        let second = try await write(entry("/2"), [2], to: run.store)
        await run.require(try await run.store.remove([first.id, first.id, 99]) == 1, "A removal is counted wrongly.")
        await run.require(try await run.store.entries(.all) == [second], "A removed entry stays, or another one goes.")
        await run.require(try await read(first, 0..<1, from: run.store) == nil, "A removed body stays.")
        _ = try await run.store.remove([second.id])
        let usage = try await run.store.usage()
        await run.require(usage.count == 0 && usage.bytes == 0, "Removed entries are counted.")
    }

    @Sendable private static func selected(_ run: Run) async throws {
        let store = run.store
        let one = try await write(entry("/1", ["Cache-Groups": "\"a\", \"b\""], tags: ["t", "u"]), [1], to: store)
        var two = try await write(entry("/2", ["Cache-Groups": "\"b\""], tags: ["u"]), [1], to: store)
        let use: HeaderFields = ["Use-As-Dictionary": "match=\"/*\""]
        let far = try await write(
            entry("/1", use.merging(["Cache-Groups": "\"a\""]), origin: "https://example.com:8443"), [1], to: store)
        let expected: [(HTTPCache.Selection, [HTTPCache.Entry])] = [
            (.all, [one, two, far]), (.origin("https://example.com"), [one, two]),
            (.origin("https://example.com:8443"), [far]), (.origin("https://example"), []), (.key(two.key), [two]),
            (.group("a", origin: "https://example.com"), [one]),
            (.group("b", origin: "https://example.com"), [one, two]),
            (.group("a", origin: "https://example.com:8443"), [far]), (.tag("t"), [one]), (.tag("u"), [one, two]),
            (.tag("a"), []), (.dictionaries(origin: "https://example.com:8443"), [far]),
            (.dictionaries(origin: "https://example.com"), []),
        ]
        for (selection, entries) in expected {
            let found = Set(try await store.entries(selection).map(\.id))
            await run.require(found == Set(entries.map(\.id)), "The selection \(selection) finds other entries.")
        }
        two.fields.merge(use)
        try await store.update(two)
        let updated = try await store.entries(.dictionaries(origin: "https://example.com")).map(\.id)
        await run.require(updated == [two.id], "The selection .dictionaries does not find an updated entry.")
        _ = try await store.remove([two.id])
        let removed = try await store.entries(.dictionaries(origin: "https://example.com"))
        await run.require(removed.isEmpty, "The selection .dictionaries finds a removed entry.")
    }

    @Sendable private static func ranges(_ run: Run) async throws {
        let body = pattern(70_001, seed: 2)
        let entry = try await write(entry("/"), body, to: run.store)
        for range in [0..<1, 1..<70_001, 65_535..<65_537, 70_000..<70_001, 300..<40_000] as [Range<Int64>] {
            let part = body[Int(range.lowerBound)..<Int(range.upperBound)]
            await run.require(
                try await read(entry, range, from: run.store) == Array(part), "The range \(range) has other bytes.")
        }
    }

    @Sendable private static func large(_ run: Run) async throws {
        let count = Int(min(run.store.maximumBodySize, 3_000_001))
        let body = pattern(count, seed: 3)
        let entry = try await write(entry("/"), body, to: run.store)
        await run.require(
            try await read(entry, 0..<Int64(count), from: run.store) == body, "A body of \(count) bytes is changed.")
        let range = Int64(count / 3)..<Int64(count / 2)
        await run.require(
            try await read(entry, range, from: run.store) == Array(body[count / 3..<count / 2]),
            "A range of a large body has other bytes.")
    }

    @Sendable private static func concurrent(_ run: Run) async throws {
        let store = run.store
        let entries = try await withThrowingTaskGroup(of: HTTPCache.Entry.self) { group in
            for index in 0..<20 {
                group.addTask {
                    try await write(entry("/\(index % 5)"), pattern(5000, seed: UInt64(index)), to: store)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        await run.require(
            Set(try await store.entries(.all).map(\.id)) == Set(entries.map(\.id)), "Concurrent writers lose entries.")
        for entry in entries {
            let body = try await read(entry, 0..<5000, from: store)
            await run.require(body?.count == 5000, "A body of concurrent writers is lost.")
        }
    }

    @Sendable private static func limited(_ run: Run) async throws {
        let store = run.store
        guard let limit = try await store.usage().limit, limit <= 64 << 20 else { return }
        let size = Int(min(store.maximumBodySize, limit / 8))
        let kept = try await write(entry("/kept"), pattern(size, seed: 1), to: store)
        for index in 0..<12 {
            _ = try await write(entry("/\(index)"), pattern(size, seed: 2), to: store)
            let body = try await read(kept, 0..<1, from: store)
            await run.require(body != nil, "A full store removes a recently used body.")
        }
        let usage = try await store.usage()
        await run.require(usage.bytes <= limit, "The store has \(usage.bytes) bytes and a limit of \(limit).")
        await run.require(
            try await store.entries(.all).count == usage.count, "The usage counts other entries than there are.")
    }
}
