// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
// CurlewCache keeps the responses of an HTTP cache on the disk: an index in SQLite, and a file for each body. It uses
// the store protocol of Curlew and the file functions of the engine.

public import Curlew

extension HTTPCache {
    /// Creates a cache on the disk.
    ///
    /// ```swift
    /// let session = Session(cache: try await .disk(limit: .mebibytes(50)))
    /// ```
    ///
    /// - Parameters:
    ///   - directory: The path of the directory; `$XDG_CACHE_HOME` or `~/.cache`, with the name of the program and
    ///     "http", unless given.
    ///   - limit: The maximum size of all stored responses; 150 MiB unless given.
    ///   - configure: Changes the default options.
    /// - Throws: `NetworkError` of kind `.cacheFailed`, for example when another user owns the directory.
    public static func disk(
        _ directory: String? = nil, limit: ByteCount = .mebibytes(150),
        _ configure: (inout Options) -> Void = { _ in }
    ) async throws(NetworkError) -> HTTPCache {
        HTTPCache(store: try await DiskCacheStore(directory, limit: limit), configure)
    }
}
