// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// curlew-cache is a process for tests in which several processes share a cache on the disk, or in which a process is
// killed or has no space. It runs the commands of its arguments, or else of the lines of its input, and prints a line
// for each: the command and "ok", its result, or "failed" and the error.

import CKillPoint
import Curlew
import CurlewCache
import CurlewTesting
import FoundationEssentials
import Glibc

await CacheProgram.run(CommandLine.arguments)

/// The commands, in which N is the number of a resource, V a version of it, and U counts the updates of an entry.
struct CacheProgram {
    struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    private let directory: String
    private let limit: ByteCount
    private var opened: DiskCacheStore?
    private var writers: [any HTTPCache.BodyWriter] = []

    private init(_ directory: String, _ limit: ByteCount) {
        self.directory = directory
        self.limit = limit
    }

    /// The arguments are DIRECTORY, LIMIT and commands.
    static func run(_ arguments: [String]) async {
        guard arguments.count >= 3, let limit = Int64(arguments[2]) else {
            say("usage: curlew-cache DIRECTORY LIMIT [COMMAND…]")
            exit(2)
        }
        // A write beyond the limit of the size of files fails instead.
        signal(SIGXFSZ, SIG_IGN)
        var program = CacheProgram(arguments[1], .bytes(limit))
        if arguments.count > 3 {
            for command in arguments[3...] { await program.answer(command) }
        } else {
            while let line = readLine() { await program.answer(line) }
        }
    }

    /// Writes a line at once, without buffering.
    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    private mutating func answer(_ command: String) async {
        let words = command.split(separator: " ").map(String.init)
        do {
            let result = try await run(words.first ?? "", Array(words.dropFirst()))
            Self.say("\(command): \(result)")
        } catch {
            Self.say("\(command): failed \(error)")
        }
    }

    private mutating func run(_ command: String, _ words: [String]) async throws -> String {
        let numbers = words.compactMap { Int($0) }
        switch (command, numbers.count) {
        case ("open", _):
            let path = words.first.map { directory + "/" + $0 } ?? directory
            opened = try await DiskCacheStore(path, limit: limit)
        case ("close", 0): try await close()
        // A fourth number announces the size of the body.
        case ("add", 3...): try await put(Item(numbers), isAnnounced: numbers.count > 3)
        case ("replace", 3): try await put(Item(numbers), replacing: ids(numbers[0]))
        case ("update", 2): try await update(numbers[0], to: numbers[1])
        case ("remove", 1...):
            var ids: [HTTPCache.Entry.ID] = []
            for number in numbers { ids += try await self.ids(number) }
            _ = try await store().remove(ids)
        case ("use", 1): for entry in try await entries(numbers[0]) { try await check(entry) }
        case ("check", 0): return try await check()
        case ("random", 2): return try await random(seed: numbers[0], numbers[1])
        case ("hold", 3):
            let item = Item(numbers)
            let writer = try await store().writer(for: item.entry, expecting: nil)
            try await writer.write(ByteChunk(item.body.bytes))
            writers.append(writer)
        case ("limit", 1): limitFiles(to: numbers[0])
        case ("steps", 0): return "\(kill_point_steps())"
        default: throw Failed(description: "there is no such command")
        }
        return "ok"
    }

    private func store() throws -> DiskCacheStore {
        guard let opened else { throw Failed(description: "the store is not open") }
        return opened
    }

    /// Releases the store, and waits until SQLite has closed the index.
    private mutating func close() async throws {
        (opened, writers) = (nil, [])
        let folder = "/proc/self/fd"
        while try FileManager.default.contentsOfDirectory(atPath: folder).contains(where: { name in
            let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
            return path?.contains("/index.sqlite") == true
        }) {
            await Task.yield()
        }
    }

    /// Limits the size of files that this process writes; 0 lifts the limit.
    private func limitFiles(to size: Int) {
        var limit = rlimit(rlim_cur: size > 0 ? rlim_t(size) : rlim_t.max, rlim_max: rlim_t.max)
        setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
    }

    // MARK: Entries

    private func entries(_ number: Int) async throws -> [HTTPCache.Entry] {
        try await store().entries(.key(Item.key(number)))
    }

    private func ids(_ number: Int) async throws -> [HTTPCache.Entry.ID] { try await entries(number).map(\.id) }

    private func put(
        _ item: Item, replacing replaced: [HTTPCache.Entry.ID] = [], isAnnounced: Bool = false
    ) async throws {
        var entry = item.entry
        let writer = try await store().writer(for: entry, expecting: isAnnounced ? Int64(item.size) : nil)
        do {
            let bytes = item.body.bytes
            for start in stride(from: 0, to: bytes.count, by: 60_000) {
                try await writer.write(ByteChunk(bytes[start..<min(start + 60_000, bytes.count)]))
            }
            entry.size = Int64(item.size)
            try await writer.finish(entry, replacing: replaced)
        } catch {
            await writer.discard()
            throw error
        }
    }

    private func update(_ number: Int, to update: Int) async throws {
        for var entry in try await entries(number) {
            entry.fields[Item.update] = "\(update)"
            try await store().update(entry)
        }
    }

    /// Checks the body of an entry, which may be missing only if the entry is not visible any more.
    private func check(_ entry: HTTPCache.Entry) async throws {
        guard let item = Item(entry) else { throw Failed(description: "\(entry) is damaged") }
        guard let bytes = try await read(entry) else {
            if try await ids(item.number).contains(entry.id) { throw Failed(description: "\(item) has no body") }
            return
        }
        if bytes != item.body.bytes { throw Failed(description: "\(item) has another body") }
    }

    private func read(_ entry: HTTPCache.Entry) async throws -> [UInt8]? {
        switch try await store().body(of: entry, 0..<entry.size) {
        case nil: return nil
        case .data(let data)?: return Array(data)
        case .chunks(let chunks)?: return try await Self.collect(chunks)
        }
    }

    private static func collect<Chunks: AsyncSequence>(_ chunks: Chunks) async throws -> [UInt8]
    where Chunks.Element == ByteChunk {
        var bytes: [UInt8] = []
        for try await chunk in chunks { bytes += chunk }
        return bytes
    }

    /// Checks all entries and returns their list.
    private func check() async throws -> String {
        let entries = try await store().entries(.all)
        for entry in entries { try await check(entry) }
        return Item.list(entries.compactMap { Item($0) })
    }

    /// Runs random operations, and returns how many entries of other processes they found.
    private func random(seed: Int, _ count: Int) async throws -> String {
        var (chance, foreign) = (Chance(seed: UInt64(seed)), 0)
        for step in 0..<count {
            let number = Int.random(in: 0..<24, using: &chance)
            let found = try await entries(number)
            foreign += found.count { Item($0).map { $0.version / 10_000 != seed } ?? true }
            switch Int.random(in: 0..<10, using: &chance) {
            case 0..<5:
                let size = Int.random(in: 0..<60_000, using: &chance)
                try await put(Item([number, seed * 10_000 + step, size]), replacing: found.map(\.id))
            case 5: _ = try await store().remove(found.map(\.id))
            case 6: try await update(number, to: step % 10)
            default: for entry in found { try await check(entry) }
            }
            let bytes = try await store().usage().bytes
            if bytes > limit.bytes { throw Failed(description: "the store has \(bytes) bytes") }
        }
        return "ok \(foreign)"
    }
}
