// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport
internal import FoundationEssentials

extension CacheExchange {
    /// Returns a request that names the best stored dictionary, so that the server may compress its response with that
    /// (RFC 9842 §2.2); without a dictionary, the request unchanged.
    func offeringDictionary(_ request: Request) async -> Request {
        // A request with its own `Accept-Encoding` gets what it names, and a range is a part of the plain body.
        guard cache.options.usesDictionaries, let codings = settings.acceptEncodingWithDictionary, lookUp.decodes,
            lookUp.method == .get, lookUp.defaults[.acceptEncoding] == settings.acceptEncoding,
            !request.fields.contains(where: { Self.excluding.contains($0.name) }),
            let dictionary = await cache.dictionary(for: lookUp)
        else { return request }
        var request = request
        request.dictionary = dictionary
        request.fields[.acceptEncoding] = codings
        request.fields[.availableDictionary] = ":\(Data(dictionary.digest).base64EncodedString()):"
        if !dictionary.id.isEmpty { request.fields[.dictionaryID] = StructuredField.serialized(dictionary.id) }
        return request
    }

    private static let excluding: Set<HeaderName> = [.range, .acceptEncoding, .availableDictionary, .dictionaryID]
}

extension HTTPCache {
    /// Returns the best dictionary for a request, from memory or from the store; nil without one.
    fileprivate func dictionary(for request: CacheRequest) async -> CompressionDictionary? {
        let origin = CacheKey.origin(of: request.url)
        let entries = await attempt { try await store.entries(.dictionaries(origin: origin)) } ?? []
        guard let (entry, use) = rules.dictionary(for: request, among: entries, at: time) else { return nil }
        if let known = dictionaries.withLock({ $0.use(entry.id) }) { return known }
        let body = await attempt { try await wholeBody(of: entry) }
        guard let data = body ?? nil, let made = CompressionDictionary(data, id: use.id) else { return nil }
        let released = dictionaries.withLock { $0.keep(made, for: entry.id) }
        withExtendedLifetime(released) {}
        return made
    }

    private func wholeBody(of entry: Entry) async throws -> Data? {
        switch try await store.body(of: entry, 0..<entry.size) {
        case nil: return nil
        case .data(let data)?: return data.count == entry.size ? data : nil
        case .chunks(let chunks)?:
            return try await collected(chunks, size: Int(entry.size))
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
    private static let maximumSize = 2 * Int(CacheRules.largestDictionary)
    private static let maximumCount = 16

    /// The least recently used dictionary first.
    private var loaded: [(id: HTTPCache.Entry.ID, dictionary: CompressionDictionary)] = []

    /// Returns the dictionary of an entry, and makes it the most recently used one.
    mutating func use(_ id: HTTPCache.Entry.ID) -> CompressionDictionary? {
        guard let position = loaded.firstIndex(where: { $0.id == id }) else { return nil }
        loaded.append(loaded.remove(at: position))
        return loaded.last?.dictionary
    }

    /// Adds a dictionary; returns those that it replaces, which are released without a lock.
    mutating func keep(_ dictionary: CompressionDictionary, for id: HTTPCache.Entry.ID) -> [CompressionDictionary] {
        var released = loaded.filter { $0.id == id }.map(\.dictionary)
        loaded.removeAll { $0.id == id }
        loaded.append((id, dictionary))
        var size = loaded.reduce(0) { $0 + $1.dictionary.bytes.count }
        while size > Self.maximumSize || loaded.count > Self.maximumCount {
            let first = loaded.removeFirst().dictionary
            size -= first.bytes.count
            released.append(first)
        }
        return released
    }
}
