// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension HTTPCache {
    /// Returns the stored entries, in any order.
    ///
    /// - Throws: `NetworkError` of kind `.cacheFailed` when the store fails.
    public func entries() async throws(NetworkError) -> [Entry] { try await entries(.all) }

    /// Returns the stored entries for a URL: more than one if the responses depend on fields of the request.
    ///
    /// - Parameter url: An http or https URL.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for an invalid URL, and `.cacheFailed` when the store fails.
    public func entries(for url: String) async throws(NetworkError) -> [Entry] {
        let text = try CacheKey.url(of: Request(url).target())
        return try await entries(.key(text)) + entries(.key(CacheKey.ofSearch(text))).filter { $0.url == text }
    }

    /// Removes the stored responses of a URL.
    ///
    /// Responses of the URL that were requested earlier and are still being received are not stored.
    ///
    /// - Parameter url: An http or https URL.
    /// - Returns: The number of removed entries.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for an invalid URL, and `.cacheFailed` when the store fails.
    @discardableResult
    public func remove(url: String) async throws(NetworkError) -> Int {
        let text = try CacheKey.url(of: Request(url).target())
        // A response that arrives while the entries are read is not stored either.
        countRemoval(of: text)
        return try await removeStored(entries(for: text))
    }

    /// Removes the stored responses of an origin.
    ///
    /// Responses of any URL that were requested earlier and are still being received are not stored.
    ///
    /// - Parameter url: A URL of the origin.
    /// - Returns: The number of removed entries.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for an invalid URL, and `.cacheFailed` when the store fails.
    @discardableResult
    public func remove(originOf url: String) async throws(NetworkError) -> Int {
        try await remove(.origin(CacheKey.origin(of: Request(url).target()))) { _ in true }
    }

    /// Removes the stored responses with a tag, which the `willStore` closure has set.
    ///
    /// Responses of any URL that were requested earlier and are still being received are not stored.
    ///
    /// - Returns: The number of removed entries.
    /// - Throws: `NetworkError` of kind `.cacheFailed` when the store fails.
    @discardableResult
    public func remove(tag: String) async throws(NetworkError) -> Int { try await remove(.tag(tag)) { _ in true } }

    /// Removes the stored responses of a group of an origin (RFC 9875).
    ///
    /// Responses of any URL that were requested earlier and are still being received are not stored.
    ///
    /// - Parameters:
    ///   - group: A name in the `Cache-Groups` field of the responses.
    ///   - url: A URL of the origin.
    /// - Returns: The number of removed entries.
    /// - Throws: `NetworkError` of kind `.invalidRequest` for an invalid URL, and `.cacheFailed` when the store fails.
    @discardableResult
    public func remove(group: String, of url: String) async throws(NetworkError) -> Int {
        try await remove(.group(group, origin: CacheKey.origin(of: Request(url).target()))) { _ in true }
    }

    /// Removes the stored responses that satisfy a condition.
    ///
    /// Responses of any URL that were requested earlier and are still being received are not stored.
    ///
    /// - Parameter condition: Called once for each entry.
    /// - Returns: The number of removed entries.
    /// - Throws: `NetworkError` of kind `.cacheFailed` when the store fails.
    @discardableResult
    public func removeAll(where condition: (Entry) -> Bool = { _ in true }) async throws(NetworkError) -> Int {
        try await remove(.all, where: condition)
    }

    /// Returns the number of stored entries and their size.
    ///
    /// - Throws: `NetworkError` of kind `.cacheFailed` when the store fails.
    public func usage() async throws(NetworkError) -> Usage {
        do { return try await store.usage() } catch { throw Self.failure(error) }
    }

    private func entries(_ selection: Selection) async throws(NetworkError) -> [Entry] {
        do { return try await store.entries(selection) } catch { throw Self.failure(error) }
    }

    private func remove(
        _ selection: Selection, where condition: (Entry) -> Bool
    ) async throws(NetworkError) -> Int {
        countRemoval(of: nil)
        return try await removeStored(entries(selection).filter(condition))
    }

    private func removeStored(_ entries: [Entry]) async throws(NetworkError) -> Int {
        let ids = entries.map(\.id)
        defer { forget(ids) }
        do { return ids.isEmpty ? 0 : try await store.remove(ids) } catch { throw Self.failure(error) }
    }

    private static func failure(_ error: any Error) -> NetworkError {
        if let error = error as? NetworkError { return error }
        return NetworkError(
            error is CancellationError ? .cancelled : .cacheFailed, phase: .preparing,
            "The store of the cache threw \(type(of: error)).", cause: error)
    }
}
