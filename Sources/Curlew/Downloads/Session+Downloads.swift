// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Session {
    /// Downloads something into a file.
    ///
    /// What arrives stands in a `.part` file beside the destination and gets its name when all of it is there and was
    /// checked, at once and as a whole. A download that was broken off, be it by the end of the process, goes on where it
    /// was when it is asked for again, as long as the server has the same state of the resource. A connection that breaks is
    /// replaced by another one, as the session's retry policy says, three times in a row without one. `Accept-Encoding` is
    /// `identity` unless the request says otherwise; what a server compresses all the same is refused (`.unsupported`),
    /// unless `options.decompression` is `.off`. A compressed download cannot be resumed.
    ///
    /// ```swift
    /// let file = try await session.download("https://example.com/big.iso", to: .directory("/srv/iso"))
    /// print(file.path, file.bytes)
    /// ```
    ///
    /// - Parameters:
    ///   - request: A request by GET or POST, or a URL as a string literal; `options.statuses` and `options.accepting` say
    ///     which responses are acceptable.
    ///   - destination: Where the file goes; where the session's downloads go unless given.
    ///   - overwrite: What becomes of a file of the same name; the download fails unless given.
    ///   - checksum: The digest that the file has to have; nil checks only what the server states (RFC 9530).
    ///   - options: How it is done otherwise.
    /// - Returns: The file.
    /// - Throws: `NetworkError`: `.destinationFailed` in phase `saving`, `.checksumMismatch`, `.contentChanged`,
    ///   `.unacceptableStatus`, `.unacceptableContentType`, or whatever else ends a transfer; its ``NetworkError/resumeToken``
    ///   goes on with what there is.
    @discardableResult
    public nonisolated func download(
        _ request: Request, to destination: DownloadDestination? = nil, overwrite: DownloadOverwrite = .fail,
        expecting checksum: Checksum? = nil, saving options: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        try await transfer(request, to: destination, overwrite: overwrite, expecting: checksum, saving: options).value
    }

    /// The cold transfer of a download, as ``download(_:to:overwrite:expecting:saving:)`` makes it.
    ///
    /// Its `bytes` and `stream` read the file from its start while it is received: many can, at any time, and a slow one
    /// holds nothing up; what they read is not checked yet. Its progress is that of the whole. Paused for longer than
    /// ``DownloadOptions/pauseGrace``, it gives up its connection.
    ///
    /// - Parameters:
    ///   - request: A request by GET or POST, or a URL as a string literal.
    ///   - destination: Where the file goes; where the session's downloads go unless given.
    ///   - overwrite: What becomes of a file of the same name; the download fails unless given.
    ///   - checksum: The digest that the file has to have.
    ///   - options: How it is done otherwise.
    /// - Returns: The transfer.
    public nonisolated func transfer(
        _ request: Request, to destination: DownloadDestination? = nil, overwrite: DownloadOverwrite = .fail,
        expecting checksum: Checksum? = nil, saving options: DownloadOptions = DownloadOptions()
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

    /// Goes on with a download that did not end.
    ///
    /// What a ``Client`` began, it goes on with, too (``Client/resume(from:fields:options:saving:)``): with its trust, its
    /// fields and its credentials.
    ///
    /// - Parameters:
    ///   - token: What that one left.
    ///   - request: The request to go on with, where the token's URL alone is not enough: it needs credentials, or the URL
    ///     has expired.
    ///   - options: How it is done.
    /// - Returns: The cold transfer of the same file to the same place; it begins at the start when the part is gone.
    public nonisolated func resume(
        from token: ResumeToken, request: Request? = nil, saving options: DownloadOptions = DownloadOptions()
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
        // It may be that of an earlier download.
        request.interceptors.removeAll { $0 is DownloadStep }
        request.interceptors.insert(DownloadStep(), at: 0)
        return Transfer(core.transfer(request, for: run)) { _ throws(NetworkError) in try run.file() }
    }
}

extension Transfer where Output == DownloadedFile {
    /// Ends the download, and waits until it has ended.
    ///
    /// - Parameter isWanted: Whether what was received is kept, to be gone on with; false removes it, also when the download
    ///   had failed before.
    /// - Returns: What it takes to go on; nil when nothing is there, the server gave no strong validator, or the file was
    ///   complete.
    @discardableResult
    public func cancel(producingResumeToken isWanted: Bool) async -> ResumeToken? {
        guard let run = token.run.keeper as? DownloadRun else { return nil }
        if !isWanted { run.discard() }
        token.run.cancel()
        if let drive = token.run.state.withLock({ $0.drive }) { await token.run.settled(drive) }
        guard let left = run.token else { return nil }
        if isWanted { return left }
        // It had ended before.
        await left.discard()
        return nil
    }
}
