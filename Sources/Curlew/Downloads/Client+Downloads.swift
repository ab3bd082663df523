// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Client {
    /// Downloads something of the API into a file, as ``Session/download(_:to:overwrite:expecting:saving:)`` does.
    ///
    /// ```swift
    /// let file = try await api.download("exports/7", to: .directory("/srv/exports"))
    /// ```
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - destination: Where the file goes; where the session's downloads go unless given.
    ///   - overwrite: What becomes of a file of the same name; the download fails unless given.
    ///   - checksum: The digest that the file has to have; nil checks only what the server states (RFC 9530).
    ///   - saving: How it is done otherwise.
    /// - Returns: The file.
    /// - Throws: `NetworkError`, as the session's does.
    @discardableResult
    public func download(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        to destination: DownloadDestination? = nil, overwrite: DownloadOverwrite = .fail,
        expecting checksum: Checksum? = nil,
        saving: DownloadOptions = DownloadOptions()
    ) async throws(NetworkError) -> DownloadedFile {
        let call = Call(.get, path, query: query, fields: fields, options: options)
        return try await transfer(
            call, to: destination, overwrite: overwrite, expecting: checksum, saving: saving
        ).value
    }

    /// Goes on with a download of the API that did not end, as ``Session/resume(from:request:saving:)`` does.
    ///
    /// - Parameters:
    ///   - token: What that one left; one of another origin than the client's base gets none of its credentials.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - saving: How it is done.
    /// - Returns: The cold transfer of the same file to the same place.
    public func resume(
        from token: ResumeToken, fields: HeaderChanges = [:], options: Request.Options = [],
        saving: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        let call = Call(.get, Path(raw: token.url), fields: fields, options: options)
        do throws(NetworkError) {
            var request = try request(for: call)
            // It has the client's query already.
            request.urlText = token.url
            return session.resume(from: token, request: request, saving: saving)
        } catch {
            let request = error.request ?? Request(token.url)
            return Transfer(session.core.transfer(request, refusedBy: error)) { _ throws(NetworkError) in throw error }
        }
    }

    /// The cold transfer of a download, as ``Session/transfer(_:to:overwrite:expecting:saving:)`` makes it.
    ///
    /// - Parameters:
    ///   - call: What is asked for, by GET or POST; one that makes no sense makes the transfer throw when it is used.
    ///   - destination: Where the file goes; where the session's downloads go unless given.
    ///   - overwrite: What becomes of a file of the same name; the download fails unless given.
    ///   - checksum: The digest that the file has to have.
    ///   - saving: How it is done otherwise.
    public func transfer(
        _ call: Call, to destination: DownloadDestination? = nil, overwrite: DownloadOverwrite = .fail,
        expecting checksum: Checksum? = nil, saving: DownloadOptions = DownloadOptions()
    ) -> Transfer<DownloadedFile> {
        do throws(NetworkError) {
            return session.transfer(
                try request(for: call), to: destination, overwrite: overwrite, expecting: checksum, saving: saving)
        } catch {
            let request = error.request ?? Request(call.method, base.url(of: call.path.text).text)
            return Transfer(session.core.transfer(request, refusedBy: error)) { _ throws(NetworkError) in throw error }
        }
    }
}
