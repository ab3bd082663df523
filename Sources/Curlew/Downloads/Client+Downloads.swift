// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension APIClient {
    /// Downloads a resource of the API to a file, as ``Session/download(_:to:overwrite:expecting:options:)`` does.
    ///
    /// ```swift
    /// let file = try await api.download("exports/7", to: .directory("/srv/exports"))
    /// ```
    ///
    /// - Parameters:
    ///   - path: The path of the resource, relative to the base URL.
    ///   - query: Query items to add to the client's query.
    ///   - fields: Changes to the client's fields; nil as a value omits the field.
    ///   - options: Options that override the client's options.
    ///   - destination: The destination of the file; nil uses the session's destination for downloads.
    ///   - overwrite: The policy for an existing file of the same name; by default the download fails.
    ///   - checksum: The expected digest of the file; nil checks only the digests that the server states (RFC 9530).
    ///   - downloadOptions: The options of the download.
    /// - Returns: The file.
    /// - Throws: `NetworkError`, the same errors as those of the session's method.
    @discardableResult
    public func download(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        to destination: DownloadDestination? = nil, overwrite: DownloadDestination.Overwrite = .fail,
        expecting checksum: Checksum? = nil,
        downloadOptions: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        let call = Call(.get, path, query: query, fields: fields, options: options)
        return try await downloadTransfer(
            call, to: destination, overwrite: overwrite, expecting: checksum, downloadOptions: downloadOptions
        ).value
    }
}

extension Client {
    /// Resumes an interrupted download of the API, as ``Session/resume(from:request:options:)`` does.
    ///
    /// - Parameters:
    ///   - token: The token of the interrupted download; the client's credentials are not sent to another origin than
    ///     that of the client's base URL.
    ///   - fields: Changes to the client's fields; nil as a value omits the field.
    ///   - options: Options that override the client's options.
    ///   - downloadOptions: The options of the download.
    /// - Returns: The cold transfer of the same file to the same path.
    public func resume(
        from token: ResumeToken, fields: HeaderChanges = [:], options: Request.Options = [],
        downloadOptions: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        let call = Call(.get, Path(raw: token.url), fields: fields, options: options)
        do throws(NetworkError) {
            var request = try request(for: call)
            // The token's URL includes the client's query already.
            request.url = token.url
            return session.resume(from: token, request: request, options: downloadOptions)
        } catch {
            let request = error.request ?? Request(token.url)
            return Transfer(session.core.transfer(request, refusedBy: error)) { _ throws(NetworkError) in throw error }
        }
    }

    /// Returns the cold transfer of a download, as ``Session/downloadTransfer(_:to:overwrite:expecting:options:)``
    /// does.
    ///
    /// - Parameters:
    ///   - call: A GET or POST call; if it is invalid, the transfer throws when it is used.
    ///   - destination: The destination of the file; nil uses the session's destination for downloads.
    ///   - overwrite: The policy for an existing file of the same name; by default the download fails.
    ///   - checksum: The expected digest of the file.
    ///   - downloadOptions: The options of the download.
    public func downloadTransfer(
        _ call: Call, to destination: DownloadDestination? = nil, overwrite: DownloadDestination.Overwrite = .fail,
        expecting checksum: Checksum? = nil, downloadOptions: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        do throws(NetworkError) {
            return session.downloadTransfer(
                try request(for: call), to: destination, overwrite: overwrite, expecting: checksum,
                options: downloadOptions)
        } catch {
            let request = error.request ?? Request(call.method, base.url(of: call.path.text).text)
            return Transfer(session.core.transfer(request, refusedBy: error)) { _ throws(NetworkError) in throw error }
        }
    }
}
