// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// CurlewMedia plays while it caches: files of any size are read at any position while they arrive.

public import Curlew
internal import CurlewEngine
public import FoundationEssentials

/// A cache on the disk for large files that are read while they arrive, at any position and by any number of readers.
///
/// One transfer fills a sparse file and serves all readers that wait. A reader that seeks into a hole gets it filled by
/// a request for that range, with `If-Range` and a strong validator (RFC 9110 §13.1.5, §14), so that bytes of two
/// versions never mix. Bytes that are stored, or that a transfer will deliver soon, are not requested again.
///
/// ```swift
/// let cache = try await MediaCache(at: "/var/cache/player/media", session: session)
/// let film = try await cache.media(for: "https://example.com/film.mp4")
/// for try await chunk in film.bytes(1_000_000..<2_000_000) { play(chunk) }
/// ```
///
/// A server without ranges, or without a strong validator, sends the whole file once; readers further on wait for it. A
/// part of such a file is not kept.
///
/// The cache is a class and not an actor, because a handle or a reader that is released must stop transfers at once,
/// without waiting. Its state is behind a lock; work on the disk runs on disk threads. It works until it is closed, or
/// until the cache and all its handles and sequences are released.
public final class MediaCache: Sendable {
    /// The directory of the cache, which belongs to one cache at a time.
    public let directory: String
    /// The session that requests the files.
    public let session: Session
    /// The configuration of the cache.
    public let configuration: Configuration
    let store: MediaStore

    /// Opens a cache; a missing directory is created with permissions for this user only.
    ///
    /// Files that an earlier process has left unfinished are removed, as are records that are damaged or do not fit
    /// their file. Other files in the directory stay untouched.
    ///
    /// - Parameters:
    ///   - directory: The directory. It must belong to this user only, and must not be a symbolic link.
    ///   - session: The session for the requests; its own cache takes no part in them.
    ///   - configuration: The limits; all defaults unless given.
    /// - Throws: `NetworkError` of kind `.cacheFailed`: another process or cache uses the directory, or it belongs to
    ///   another user, or cannot be written; `.resourceExhausted` when the disk is full.
    public init(
        at directory: String, session: Session, configuration: Configuration = Configuration()
    ) async throws(NetworkError) {
        let path = DiskFile.absolute(directory)
        let limit = configuration.limit.bytes
        do throws(DiskFailure) {
            store = try await DiskThread.media.result(at: path + "/lock") { () throws(DiskFailure) in
                try MediaStore(path, limit: limit)
            }
        } catch {
            if error.isBusy {
                let owner = DirectoryLock.owner(of: path).map { "process \($0)" } ?? "another process"
                throw NetworkError(
                    .cacheFailed, phase: .preparing, "The media cache \(path) is in use by \(owner).",
                    hint: "Close the other cache, or choose another directory.", cause: error)
            }
            throw error.networkError(nil)
        }
        self.directory = store.directory.path
        self.session = session
        self.configuration = configuration
    }

    // MARK: Files

    /// Returns a handle for a file, after the head of a response or a stored record has told its facts.
    ///
    /// The key of a file is a digest of its URL and of the fields of the request itself, such as `Authorization`,
    /// `Cookie` and `Accept`; `Accept-Encoding`, `User-Agent`, `Referer`, `Cache-Control`, `Pragma`, `Priority`, `DNT`,
    /// the fields of a trace and those of the connection do not count. Neither the URL nor a field of the request is
    /// written to the disk. Fields and cookies that the session adds are not part of the key, so a cache belongs to the
    /// identity of its session.
    ///
    /// - Parameter request: A GET request without a body, a range or a condition, or a URL as a string literal. If a
    ///   handle for an equal request is in use, its request is sent instead.
    /// - Returns: The handle; its file is not removed while the handle or a reader exists.
    /// - Throws: `NetworkError`: `.invalidRequest`; `.unacceptableStatus` for a status outside 200…299;
    ///   `.sessionClosed` after ``close()``; `.cancelled`; or the error of the transfer.
    public func media(for request: Request) async throws(NetworkError) -> Media {
        let key = try MediaKey(request)
        let source = store.acquire(key) { MediaSource(key, request, session, store, configuration.planLimits) }
        guard let source else {
            throw NetworkError(
                .sessionClosed, phase: .preparing, "The media cache is closed.", request: request)
        }
        let use = MediaUse(source)
        let age = configuration.validatesAfter.components.seconds
        try await source.open(validAfter: Int64(Date().timeIntervalSince1970) - age)
        return Media(use)
    }

    // MARK: Management

    /// The stored files, the most recently used one first.
    public var entries: [Entry] {
        store.table.items.sorted { ($0.value.usedAt, $0.key.text) > ($1.value.usedAt, $1.key.text) }
            .map { Entry($0.value, id: $0.key.text) }
    }

    /// The size of all stored bytes on the disk, with the space of their records.
    public var size: ByteCount { .bytes(store.table.bytes) }

    /// Removes the stored file of a request.
    ///
    /// - Returns: Whether it was removed; false when it is not stored or in use.
    /// - Throws: `.invalidRequest` for a request that ``media(for:)`` refuses, too.
    @discardableResult
    public func remove(_ request: Request) async throws(NetworkError) -> Bool {
        await store.remove(try MediaKey(request))
    }

    /// Removes all stored files that are not in use.
    public func removeAll() async {
        await store.waitForSaves()
        for key in store.table.items.keys { _ = await store.remove(key) }
    }

    /// Stops all transfers, writes the records, and releases the directory for another cache or process.
    ///
    /// Readers that wait get an error of kind `.sessionClosed`. Bytes that are stored can still be read.
    public func close() async {
        store.markClosed()
        for source in store.sources { await source.shutDown() }
        await store.waitForSaves()
        await store.saveTouched()
        await store.unlock()
    }
}

extension MediaCache {
    /// The limits of a cache.
    ///
    /// ```swift
    /// let configuration = MediaCache.Configuration(limit: .gibibytes(20), readAhead: .mebibytes(32))
    /// ```
    public struct Configuration: Sendable, Hashable {
        /// The maximum size of all stored bytes; 2 GiB unless set.
        ///
        /// Files in use are not removed, so they can exceed the limit until they are released.
        public var limit: ByteCount
        /// The maximum number of transfers for one file at the same time, at least 1; 2 unless set.
        public var transfersPerFile: Int
        /// How many bytes a transfer runs ahead of the readers that it serves; 8 MiB unless set.
        ///
        /// Beyond them the transfer is held, unless ``Media/fill()`` wants the whole file.
        public var readAhead: ByteCount
        /// The distance up to which a reader waits for a running transfer to arrive, instead of starting another one;
        /// 1 MiB unless set.
        public var joinDistance: ByteCount
        /// The age after which the server is asked whether a stored file has changed, when a handle is made and no
        /// other reader uses the file; 24 hours unless set.
        ///
        /// A request for missing bytes asks in any case, by `If-Range`. If the server cannot be reached, the stored
        /// bytes are used.
        public var validatesAfter: Duration

        /// Creates a configuration.
        public init(
            limit: ByteCount = .gibibytes(2), transfersPerFile: Int = 2, readAhead: ByteCount = .mebibytes(8),
            joinDistance: ByteCount = .mebibytes(1), validatesAfter: Duration = .seconds(86_400)
        ) {
            self.limit = limit
            self.transfersPerFile = transfersPerFile
            self.readAhead = readAhead
            self.joinDistance = joinDistance
            self.validatesAfter = validatesAfter
        }

        var planLimits: FetchPlan.Limits {
            FetchPlan.Limits(
                transfers: max(transfersPerFile, 1), ahead: max(readAhead.bytes, 1), join: max(joinDistance.bytes, 0))
        }
    }

    /// A stored file in the list of a cache.
    ///
    /// ```swift
    /// for entry in cache.entries where !entry.isComplete { print(entry.storedBytes) }
    /// ```
    public struct Entry: Sendable, Hashable, Identifiable {
        /// The digest of the URL and the fields of the request, as 64 hexadecimal digits.
        public let id: String
        /// The length of the file in bytes; nil while it is unknown.
        public let length: Int64?
        /// The number of stored bytes.
        public let storedBytes: Int64
        /// The `Content-Type` of the file; nil if the server did not state it.
        public let contentType: String?
        /// When the file was last used.
        public let lastUsed: Date

        init(_ item: MediaTable.Item, id: String) {
            self.id = id
            (length, storedBytes, contentType) = (item.length, item.bytes, item.contentType)
            lastUsed = Date(timeIntervalSince1970: Double(item.usedAt) / 1_000_000)
        }

        /// Whether all bytes are stored.
        public var isComplete: Bool { length == storedBytes }
    }
}
