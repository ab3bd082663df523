// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Transfer {
    /// Waits for the response's head, so that the caller can choose how to read the body.
    ///
    /// ```swift
    /// let response = try await session.transfer("https://example.com/export").opened()
    /// if response.head.contentLength ?? .max < 1 << 20 {
    ///     let data = try await response.collect()
    ///     print(data.count)
    /// } else {
    ///     try await response.save(to: .directory("/srv/exports"))
    /// }
    /// ```
    ///
    /// This method takes the transfer's body: it can be read once, by `bytes`, `collect`, `discard` or `save` of the
    /// response. Releasing the response before it is read cancels the transfer.
    ///
    /// - Returns: The response, after all redirects.
    /// - Throws: `NetworkError`: the error that ends the transfer before its head, or `.invalidRequest` when the body
    ///   is already taken.
    public func opened() async throws(NetworkError) -> IncomingResponse {
        let reader = BodyReader(lifetime, withProgress: false)
        while let element = try await reader.nextElement() {
            guard case .head(let head) = element else { continue }
            return IncomingResponse(head, IncomingBody(reader, carrier: nil), request, nil)
        }
        throw NetworkError(.internal, phase: .receiving, "The transfer ended without a head.", request: request)
    }
}

extension IncomingResponse {
    /// Writes the body to a file, which gets its final name when it is complete.
    ///
    /// A failed save deletes what it has written: only ``Session/download(_:to:overwrite:expecting:options:)`` can
    /// resume. The status is not checked.
    ///
    /// - Parameters:
    ///   - destination: The destination of the file.
    ///   - overwrite: The policy for an existing file of the same name; by default saving fails before the body is
    ///     read.
    ///   - checksum: The expected digest of the file; nil checks no digest.
    ///   - options: The options of the save; those about resuming, pausing and queueing have no effect.
    /// - Returns: The file.
    /// - Throws: `NetworkError`: `.destinationFailed` in phase `saving`, `.checksumMismatch`, or the error of the body.
    @discardableResult
    public func save(
        to destination: DownloadDestination, overwrite: DownloadDestination.Overwrite = .fail,
        expecting checksum: Checksum? = nil,
        options: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        var part: PartialDownload?
        do {
            try request.check(expecting: [checksum], computing: options.digest)
            let path = try destination.absolute.path(for: head)
            try await request.check(path, overwrite)
            var made = try await PartialDownload(at: path + ".part", of: request.url, expected: nil, options: options) {
                _ in
            }
            part = made
            defer { part = made }
            let algorithm = checksum?.algorithm ?? options.digest
            try await made.begin(nil, of: request.url, total: nil)
            if let algorithm { try await made.keepDigest(algorithm) }
            for try await chunk in bytes { try await made.append(chunk) }
            if let checksum {
                let found = try request.computed(made.digest(checksum.algorithm), as: checksum.algorithm)
                if found != checksum { throw NetworkError.mismatch(checksum, found, "the caller expects", request) }
            }
            let name = try await made.place(at: path, overwrite, before: nil)
            return DownloadedFile(
                path: name, bytes: made.stored, response: head, checksum: algorithm.flatMap { made.digest($0) },
                resumedFrom: 0)
        } catch {
            await part?.remove()
            switch error {
            case let error as NetworkError: throw error
            case let failure as DiskFailure: throw NetworkError(failure, request: request)
            default:
                throw NetworkError(
                    .destinationFailed, phase: .saving,
                    "The closure that chooses the file's path threw \(type(of: error)).",
                    cause: error, request: request, response: head)
            }
        }
    }
}

extension NetworkError {
    static func mismatch(_ wanted: Checksum, _ found: Checksum, _ expectation: String, _ request: Request)
        -> NetworkError
    {
        NetworkError(
            .checksumMismatch, phase: .validating, "The digest of the bytes is \(found), but \(expectation) \(wanted).",
            hint: "The received bytes were discarded; download again, or check the digest.", request: request)
    }
}
