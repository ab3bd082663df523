// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension CacheExchange {
    /// Returns a request that names the best stored dictionary, so that the server may compress its response with that
    /// (RFC 9842 §2.2); without a dictionary, the request unchanged.
    func offeringDictionary(_ request: Request) async -> Request {
        // A request with its own `Accept-Encoding` gets what it names, and a range is a part of the plain body.
        guard cache.options.usesDictionaries, let codings = settings.acceptEncodingWithDictionary, lookUp.decodes,
            lookUp.isSecure, lookUp.method == .get, lookUp.defaults[.acceptEncoding] == settings.acceptEncoding,
            !request.fields.contains(where: { Self.excluding.contains($0.name) }),
            let (dictionary, id) = await cache.dictionary(for: lookUp)
        else { return request }
        var request = request
        request.dictionary = dictionary
        request.fields[.acceptEncoding] = codings
        request.fields[.availableDictionary] = ":\(Data(dictionary.digest).base64EncodedString()):"
        if !id.isEmpty { request.fields[.dictionaryID] = StructuredField.serialized(id) }
        return request
    }

    private static let excluding: Set<HeaderName> = [.range, .acceptEncoding, .availableDictionary, .dictionaryID]
}

extension HTTPCache {
    /// Returns the best dictionary for a request, from memory or from the store, and the name that the server has given
    /// to it; nil without a dictionary.
    fileprivate func dictionary(for request: CacheRequest) async -> (CompressionDictionary, id: String)? {
        let origin = CacheKey.origin(of: request.url)
        let entries = await attempt { try await store.entries(.dictionaries(origin: origin)) } ?? []
        guard let (entry, use) = rules.dictionary(for: request, among: entries, at: time) else { return nil }
        guard let dictionary = await loaded(entry) else { return nil }
        return (dictionary, use.id)
    }

    /// Returns the dictionary of an entry, from memory or from the store; requests at the same time share one load.
    private func loaded(_ entry: Entry) async -> CompressionDictionary? {
        let step = dictionaries.withLock { dictionaries in
            dictionaries.next(for: entry.id) { number in Task { await self.load(entry, number) } }
        }
        switch step {
        case .use(let dictionary): return dictionary
        case .touch(let dictionary):
            // The store does not know the uses of the dictionary in memory, and could evict its entry.
            _ = await attempt { try await store.body(of: entry, 0..<1) }
            return dictionary
        // A cancelled request leaves at once; the load continues for the others.
        case .wait(let task): return await attempt { try await race({ await task.value }, against: { nil }) } ?? nil
        }
    }

    /// Reads a dictionary; removes an entry whose body is gone or has another size.
    private func load(_ entry: Entry, _ number: UInt64) async -> CompressionDictionary? {
        var made: CompressionDictionary?
        if let body = await attempt({ try await wholeBody(of: entry) }) {
            made = body.flatMap { CompressionDictionary($0) }
            if body == nil { await remove([entry]) }
        }
        let released = dictionaries.withLock { $0.end(number, of: entry.id, with: made) }
        withExtendedLifetime(released) {}
        if made != nil { watchPressure() }
        return made
    }

    /// Releases the loaded dictionaries when memory is short; the store still has them.
    private func watchPressure() {
        guard let pressure = options.memoryPressure else { return }
        _ = observation.value {
            pressure.observe { [weak self] level in
                if level > .normal, self?.releaseDictionaries() ?? 0 > 0 { HeapTrimmer.shared.request() }
            }
        }
    }

    /// Releases the loaded dictionaries, and returns their number.
    private func releaseDictionaries() -> Int { dictionaries.withLock { $0.removeLoaded() }.count }

    private func wholeBody(of entry: Entry) async throws -> Data? {
        switch try await store.body(of: entry, 0..<entry.size) {
        case nil: return nil
        case .data(let data)?: return data.count == entry.size ? data : nil
        case .chunks(let chunks)?:
            // Chunks that end with an error are those of a damaged body.
            do { return try await collected(chunks, size: Int(entry.size)) } catch {
                count(\.failures)
                return nil
            }
        }
    }

    /// Returns the bytes of a body; nil if it has another size.
    private func collected(
        _ chunks: some AsyncSequence<ByteChunk, any Error> & Sendable, size: Int
    ) async throws -> Data? {
        var data = Data(capacity: size)
        for try await chunk in chunks {
            guard data.count + chunk.count <= size else { return nil }
            data.append(contentsOf: chunk)
        }
        return data.count == size ? data : nil
    }
}

/// The dictionaries that were used most recently, so that each is read and digested once.
struct LoadedDictionaries {
    /// The way to get a dictionary.
    enum Step {
        case use(CompressionDictionary)
        /// Use it, and tell the store about the use.
        case touch(CompressionDictionary)
        case wait(Task<CompressionDictionary?, Never>)
    }

    private struct Loaded {
        let id: HTTPCache.Entry.ID
        let dictionary: CompressionDictionary
        var uses = 0
    }

    private static let maximumSize = 2 * Int(CacheRules.largestDictionary)
    private static let maximumCount = 16
    /// The number of uses after which the store is told about one.
    private static let usesForTouch = 4

    /// The least recently used dictionary first.
    private var loaded: [Loaded] = []
    private var loading: [HTTPCache.Entry.ID: (number: UInt64, task: Task<CompressionDictionary?, Never>)] = [:]
    /// The number of dictionaries in memory.
    var count: Int { loaded.count }

    /// The number of loads so far.
    private var loads: UInt64 = 0

    /// Returns the way to get the dictionary of an entry.
    ///
    /// - Parameter load: Starts to read the dictionary, as the load with a number; called unless the dictionary is
    ///   known or being read.
    mutating func next(
        for id: HTTPCache.Entry.ID, _ load: (UInt64) -> Task<CompressionDictionary?, Never>
    ) -> Step {
        if let position = loaded.firstIndex(where: { $0.id == id }) {
            var known = loaded.remove(at: position)
            known.uses += 1
            loaded.append(known)
            return known.uses.isMultiple(of: Self.usesForTouch) ? .touch(known.dictionary) : .use(known.dictionary)
        }
        if let load = loading[id] { return .wait(load.task) }
        loads += 1
        let task = load(loads)
        loading[id] = (loads, task)
        return .wait(task)
    }

    /// Ends a load; returns the dictionaries that it replaces, which are released without a lock.
    ///
    /// - Parameters:
    ///   - number: The number of the load.
    ///   - dictionary: Nil if it cannot be used.
    mutating func end(
        _ number: UInt64, of id: HTTPCache.Entry.ID, with dictionary: CompressionDictionary?
    ) -> [CompressionDictionary] {
        // A dictionary that was removed in the meantime is not kept.
        guard loading[id]?.number == number else { return [] }
        loading[id] = nil
        guard let dictionary else { return [] }
        loaded.append(Loaded(id: id, dictionary: dictionary))
        var (released, size) = ([CompressionDictionary](), loaded.reduce(0) { $0 + $1.dictionary.bytes.count })
        while size > Self.maximumSize || loaded.count > Self.maximumCount {
            let first = loaded.removeFirst().dictionary
            size -= first.bytes.count
            released.append(first)
        }
        return released
    }

    /// Removes all loaded dictionaries, and returns them for their release without a lock.
    mutating func removeLoaded() -> [CompressionDictionary] {
        defer { loaded = [] }
        return loaded.map(\.dictionary)
    }

    /// Forgets dictionaries whose entries are removed; returns them, to be released without a lock.
    mutating func remove(_ ids: [HTTPCache.Entry.ID]) -> [CompressionDictionary] {
        if loaded.isEmpty && loading.isEmpty { return [] }
        let removed = Set(ids)
        for id in removed { loading[id] = nil }
        let released = loaded.filter { removed.contains($0.id) }.map(\.dictionary)
        loaded.removeAll { removed.contains($0.id) }
        return released
    }
}
