// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import FoundationEssentials
import Testing

@testable import CurlewCache

/// A stored response whose body is a function of its number, version and size; curlew-cache has the same function.
struct CacheItem: Sendable, Hashable, CustomStringConvertible {
    let number: Int
    let version: Int
    let size: Int
    private(set) var updates = "0"

    init(_ number: Int, _ version: Int, _ size: Int) {
        self.number = number
        self.version = version
        self.size = size
    }

    /// Reads the fields of an entry; nil if they do not agree with its key or its size.
    init?(_ entry: HTTPCache.Entry) {
        let numbers = (entry.fields["X-Item"] ?? "").split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 3, entry.key == "https://example.com/\(numbers[0])", entry.size == numbers[2] else {
            return nil
        }
        self.init(numbers[0], numbers[1], numbers[2])
        updates = entry.fields["X-Update"] ?? ""
    }

    var body: PatternBody {
        PatternBody(seed: UInt64(number) << 48 | UInt64(version) << 24 | UInt64(size), length: size)
    }

    /// A new entry with size 0.
    var entry: HTTPCache.Entry {
        let (url, now) = ("https://example.com/\(number)", Date())
        return HTTPCache.Entry(
            key: url, url: url, head: ResponseHead(status: .ok),
            fields: ["X-Item": "\(number) \(version) \(size)", "X-Update": "0"], requestedAt: now, receivedAt: now)
    }

    /// The number, the version and the number of updates, such as "3.1.0".
    var description: String { "\(number).\(version).\(updates)" }
}

extension [CacheItem] {
    /// The descriptions, as curlew-cache prints them.
    var list: String { map(\.description).joined(separator: " ") }
}

extension DiskCacheStore {
    /// Stores an item.
    func put(_ item: CacheItem, isAnnounced: Bool = false) async throws {
        var entry = item.entry
        let writer = try await writer(for: entry, expecting: isAnnounced ? Int64(item.size) : nil)
        do {
            try await writer.write(ByteChunk(item.body.bytes))
            entry.size = Int64(item.size)
            try await writer.finish(entry, replacing: [])
        } catch {
            await writer.discard()
            throw error
        }
    }

    /// Checks that each visible entry has its exact body, and that the usage is the sum of the entries and within the
    /// limit; returns the items in the order of their numbers and versions.
    ///
    /// - Parameter isAlone: Whether no process uses the store, so that it has no other files.
    func checkedItems(isAlone: Bool = true) async throws -> [CacheItem] {
        var items: [CacheItem] = []
        var (names, bytes) = (Set<String>(), Int64(0))
        for entry in try await entries(.all) {
            let item = try #require(CacheItem(entry), "\(entry) is damaged")
            #expect(try await read(entry) == item.body.bytes, "\(item)")
            let name = Self.name(of: Int64(entry.id))
            let file = try #require(StoredFile(directory + "/bodies/" + name), "\(item)")
            bytes += file.fileSize + Int64(file.data.count)
            names.insert(name)
            items.append(item)
        }
        let usage = try await usage()
        #expect(usage.count == items.count && usage.bytes == bytes && bytes <= limit.bytes)
        if isAlone {
            let found = try FileManager.default.contentsOfDirectory(atPath: directory + "/bodies")
            #expect(Set(found) == names)
        }
        return items.sorted { ($0.number, $0.version) < ($1.number, $1.version) }
    }

    private func read(_ entry: HTTPCache.Entry) async throws -> [UInt8]? {
        switch try await body(of: entry, 0..<entry.size) {
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
}
