// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Session {
    /// Downloads a resource to a file.
    ///
    /// The received bytes are in a `.part` file beside the destination, which is atomically renamed when it is complete
    /// and checked. A download that was interrupted, even by the end of the process, resumes when it is requested
    /// again, as long as the resource has not changed on the server. When a connection breaks, the download continues
    /// over another one according to the session's retry policy; without a policy it retries up to three times in a
    /// row. `Accept-Encoding` is `identity` unless the request sets it; if the server compresses the body nevertheless,
    /// the download fails (`.unsupported`), unless `options.decompression` is `.off`. A compressed download cannot be
    /// resumed.
    ///
    /// ```swift
    /// let file = try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    /// print(file.path, file.bytes)
    /// ```
    ///
    /// - Parameters:
    ///   - request: A GET or POST request, or a URL as a string literal; `options.statuses` and
    ///   `options.accepting` select the acceptable responses.
    ///   - destination: The destination of the file; nil uses the session's destination for downloads.
    ///   - overwrite: The policy for an existing file of the same name; by default the download fails.
    ///   - checksum: The expected digest of the file; nil checks only the digests that the server states (RFC 9530).
    ///   - options: The options of the download.
    /// - Returns: The file.
    /// - Throws: `NetworkError`: `.destinationFailed` in phase `saving`, `.checksumMismatch`, `.contentChanged`,
    ///   `.unacceptableStatus`, `.unacceptableContentType`, or any other error of a transfer; its
    ///   ``NetworkError/resumeToken`` resumes the download.
    @discardableResult
    public nonisolated func download(
        _ request: Request, to destination: DownloadDestination? = nil,
        overwrite: DownloadDestination.Overwrite = .fail,
        expecting checksum: Checksum? = nil, options: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        try await downloadTransfer(
            request, to: destination, overwrite: overwrite, expecting: checksum, options: options
        ).value
    }

    /// Returns the cold transfer of a download, as ``download(_:to:overwrite:expecting:options:)`` runs it.
    ///
    /// The transfer's `bytes` and `stream` read the file from its start while it is being received. Any number of
    /// readers may do so at any time, and a slow reader does not delay the download; the bytes they read are not
    /// checked yet. The progress covers the whole file. A transfer that is paused for longer than
    /// ``DownloadOptions/pauseGrace`` closes its connection.
    ///
    /// - Parameters:
    ///   - request: A GET or POST request, or a URL as a string literal.
    ///   - destination: The destination of the file; nil uses the session's destination for downloads.
    ///   - overwrite: The policy for an existing file of the same name; by default the download fails.
    ///   - checksum: The expected digest of the file.
    ///   - options: The options of the download.
    /// - Returns: The transfer.
    public nonisolated func downloadTransfer(
        _ request: Request, to destination: DownloadDestination? = nil,
        overwrite: DownloadDestination.Overwrite = .fail,
        expecting checksum: Checksum? = nil, options: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        guard let destination = destination ?? core.downloads else {
            let error = NetworkError(
                invalid: .destination, "The download has no destination.",
                hint: "Give a destination (to:), or make the session with one (downloads:).", request: request)
            return Transfer(core.transfer(request, refusedBy: error)) { _ throws(NetworkError) in throw error }
        }
        return download(
            request,
            DownloadPlan(destination: destination, overwrite: overwrite, checksum: checksum, options: options))
    }

    /// Resumes an interrupted download.
    ///
    /// To resume a download of a ``Client`` with the client's trust, fields and credentials, call
    /// ``Client/resume(from:fields:options:downloadOptions:)`` instead.
    ///
    /// - Parameters:
    ///   - token: The token of the interrupted download.
    ///   - request: The request to send, if the token's URL alone is not enough: for example, the server requires
    ///     credentials, or the URL has expired.
    ///   - options: The options of the download.
    /// - Returns: The cold transfer of the same file to the same path; it starts at the first byte when the part file
    ///   no longer exists.
    public nonisolated func resume(
        from token: ResumeToken, request: Request? = nil, options: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        download(
            request ?? Request(token.url),
            DownloadPlan(
                destination: .file(token.destination), overwrite: token.overwrite, checksum: token.checksum,
                options: options, token: token))
    }

    nonisolated func download(_ request: Request, _ plan: DownloadPlan) -> Transfer<DownloadedFile> {
        var plan = plan
        plan.destination = plan.destination.absolute
        let run = DownloadRun(plan)
        var request = request
        // The request of an earlier download still has that download's interceptor.
        request.interceptors.removeAll { $0 is DownloadInterceptor }
        request.interceptors.insert(DownloadInterceptor(), at: 0)
        return Transfer(core.transfer(request, for: run)) { _ throws(NetworkError) in try run.file() }
    }
}

extension Transfer where Output == DownloadedFile {
    /// Cancels the download, and waits until it has ended.
    ///
    /// - Parameter isWanted: Whether to keep the received bytes so that the download can be resumed; false deletes
    ///   them, even if the download had failed before.
    /// - Returns: The token for resuming; nil when no bytes are stored, the server gave no strong validator, or the
    ///   file was complete.
    @discardableResult
    public func cancel(producingResumeToken isWanted: Bool) async -> ResumeToken? {
        guard let download = run.download else { return nil }
        if !isWanted { download.discard() }
        run.cancel()
        await run.waitUntilFinishedUncancelled()
        guard let left = download.token else { return nil }
        if isWanted { return left }
        // The download had ended before this call, so it has not deleted its part file.
        await left.discard()
        return nil
    }
}
