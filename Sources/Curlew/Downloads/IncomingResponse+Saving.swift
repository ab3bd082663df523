// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Transfer {
    /// Waits for the response's head; what becomes of its body can be decided then.
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
    /// The body is taken by this: it is read once, by `bytes`, `collect`, `discard` or `save` of the response. Letting the
    /// response go unread cancels the transfer.
    ///
    /// - Returns: The response, after all redirects.
    /// - Throws: `NetworkError`: whatever ends the transfer before its head, `.invalidRequest` when the body is taken already.
    public func opened() async throws(NetworkError) -> IncomingResponse {
        let reader = TransferReader(token, withProgress: false)
        while let element = try await reader.next() {
            guard case .head(let head) = element else { continue }
            return IncomingResponse(head, IncomingBody(OpenedBody(reader), carrier: nil), request, nil)
        }
        throw NetworkError(.internal, phase: .receiving, "A transfer has ended without a head.", request: request)
    }
}

/// What is left of a transfer after its head.
private final class OpenedBody: ChunkSource {
    private let reader: TransferReader
    private let kept = Lock<HeaderFields?>(nil)

    init(_ reader: TransferReader) { self.reader = reader }

    var trailers: HeaderFields? { kept.withLock { $0 } }

    func next() async throws -> ByteChunk? {
        while let element = try await reader.next() {
            switch element {
            case .bytes(let chunk): return chunk
            case .trailers(let fields): kept.withLock { $0 = fields }
            default: continue
            }
        }
        return nil
    }
}

extension IncomingResponse {
    /// Writes the body into a file, which has its name when all of it is there.
    ///
    /// Of what fails nothing is left: only ``Session/download(_:to:overwrite:expecting:saving:)`` asks for the rest of something.
    /// The status is not judged.
    ///
    /// - Parameters:
    ///   - destination: Where the file goes.
    ///   - overwrite: What becomes of a file of the same name; it fails unless given, before the body is read.
    ///   - checksum: The digest that the file has to have; not checked unless given.
    ///   - options: How it is done otherwise; there is nothing to resume, to pause or to queue.
    /// - Returns: The file.
    /// - Throws: `NetworkError`: `.destinationFailed` in phase `saving`, `.checksumMismatch`, or whatever ends the body.
    @discardableResult
    public func save(
        to destination: DownloadDestination, overwrite: DownloadOverwrite = .fail, expecting checksum: Checksum? = nil,
        saving options: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        var part: DownloadPart?
        do {
            try request.check(expecting: [checksum], computing: options.digest)
            let path = try destination.absolute.path(for: head)
            try await request.check(path, overwrite)
            var made = try await DownloadPart(at: path + ".part", of: request.urlText, expected: nil, options: options)
            { _ in }
            part = made
            defer { part = made }
            let algorithm = checksum?.algorithm ?? options.digest
            try await made.begin(nil, of: request.urlText, total: nil)
            if let algorithm { try await made.keepDigest(algorithm) }
            for try await chunk in bytes { try await made.append(chunk) }
            if let checksum {
                let found = try request.computed(made.digest(checksum.algorithm), as: checksum.algorithm)
                if found != checksum { throw NetworkError.mismatch(checksum, found, "is expected", request) }
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
                    .destinationFailed, phase: .saving, "What chooses the file's path threw a \(type(of: error)).",
                    cause: error, request: request, response: head)
            }
        }
    }
}

extension NetworkError {
    static func mismatch(_ wanted: Checksum, _ found: Checksum, _ who: String, _ request: Request) -> NetworkError {
        NetworkError(
            .checksumMismatch, phase: .validating, "The bytes have \(found), where \(who) \(wanted).",
            hint: "What was received is gone; download it again, or check the digest.", request: request)
    }
}
