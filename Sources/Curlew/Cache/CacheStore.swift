// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A place where a cache keeps responses: memory, a directory, or a service of your own.
///
/// A store keeps entries and bodies and finds them again; it knows no rules of HTTP. Its functions are called by any
/// number of tasks at once. An error that a function throws is counted in ``HTTPCache/Statistics/failures``; the
/// response then comes from the network, and is not stored. `CacheStoreConformance` of the product CurlewTesting tests
/// a store.
///
/// ```swift
/// let cache = HTTPCache(store: RedisStore(connection))
/// ```
public protocol CacheStore: Sendable {
    /// The maximum size of one body in bytes, in which the store is interested.
    var maximumBodySize: Int64 { get }

    /// Whether the store keeps responses beyond the end of the process; true unless implemented otherwise.
    var isPersistent: Bool { get }

    /// Returns the entries of a selection, in any order.
    ///
    /// - Throws: An error when the store cannot be read.
    func entries(_ selection: HTTPCache.Selection) async throws -> [HTTPCache.Entry]

    /// Returns a part of the stored body of an entry, and counts as its use; nil when the body is gone.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - range: The wanted bytes, within `0..<entry.size`.
    /// - Throws: An error when the store cannot be read.
    func body(of entry: HTTPCache.Entry, _ range: Range<Int64>) async throws -> HTTPCache.StoredBody?

    /// Returns a writer for the body of a new entry, which becomes visible when the writer finishes.
    ///
    /// - Parameters:
    ///   - entry: The entry, with size 0.
    ///   - expectedSize: The size of the body, if it is known.
    /// - Throws: An error when the store cannot be written.
    func writer(for entry: HTTPCache.Entry, expecting expectedSize: Int64?) async throws -> any HTTPCache.BodyWriter

    /// Replaces a stored entry by one with the same id; does nothing if the store has no such entry.
    ///
    /// - Throws: An error when the store cannot be written.
    func update(_ entry: HTTPCache.Entry) async throws

    /// Removes entries and their bodies; bodies that are being read stay readable.
    ///
    /// - Returns: The number of entries that the store had.
    /// - Throws: An error when the store cannot be written.
    @discardableResult
    func remove(_ ids: [HTTPCache.Entry.ID]) async throws -> Int

    /// Returns the number of entries and their size.
    ///
    /// - Throws: An error when the store cannot be read.
    func usage() async throws -> HTTPCache.Usage
}

extension CacheStore {
    /// True.
    public var isPersistent: Bool { true }
}

extension HTTPCache {
    /// The stored body of a response.
    public enum StoredBody: Sendable {
        /// The whole requested range.
        case data(Data)
        /// The requested range in chunks, for one reader.
        case chunks(any AsyncSequence<ByteChunk, any Error> & Sendable)
    }

    /// Writes the body of one entry; one task at a time uses it.
    public protocol BodyWriter: Sendable {
        /// Adds the next bytes, and waits while the store is too slow.
        ///
        /// - Throws: An error when the bytes cannot be written.
        func write(_ chunk: ByteChunk) async throws

        /// Makes the entry visible together with the written bytes, and removes those that it replaces, in one step.
        ///
        /// - Parameters:
        ///   - entry: The entry with its final size.
        ///   - replaced: The ids of the entries to remove.
        /// - Throws: An error when the entry cannot be stored.
        func finish(_ entry: HTTPCache.Entry, replacing replaced: [HTTPCache.Entry.ID]) async throws

        /// Discards the written bytes; called instead of `finish`, also after an error.
        func discard() async
    }

    /// The size of a store.
    public struct Usage: Sendable, Hashable {
        /// The number of entries.
        public var count: Int
        /// The bytes that entries and bodies take.
        public var bytes: Int64
        /// The bytes that the store may take; nil when it has no limit.
        public var limit: Int64?

        /// Creates a size.
        public init(count: Int, bytes: Int64, limit: Int64?) {
            self.count = count
            self.bytes = bytes
            self.limit = limit
        }
    }
}
