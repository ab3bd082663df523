// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An interface that makes calls to an API: a ``Client``, or a type that wraps one.
///
/// Every conforming type has the verbs (`get`, `post`, `send` and so on). Code that takes `any APIClient` can therefore
/// receive the real client, a recording client, or a client whose session responds without a network.
///
/// ```swift
/// struct GitHub: Sendable {
///     var api: any APIClient = Client("https://api.github.com")
///
///     func repositories(of login: String) async throws(NetworkError) -> [Repository] {
///         try await api.get("users/\(login)/repos")
///     }
/// }
/// ```
///
/// A verb awaits a value. `transfer` returns a run that the caller can observe, pause and cancel. `stream` returns a
/// sequence. All of them take the same arguments in the same order. An awaited value is decoded in the caller's task,
/// but not on the caller's actor; the elements of a stream are decoded in the task that iterates the stream.
public protocol APIClient: Sendable {
    /// The format that reads the responses and the bodies of refused responses; JSON by default.
    ///
    /// A type that wraps a client returns the client's format.
    var responseFormat: any ResponseFormat { get }

    /// Makes a call and returns the serializer's output for its response.
    ///
    /// - Parameters:
    ///   - call: The call to make.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`: `.invalidRequest` and `.encodingFailed` before anything is sent, `.unacceptableStatus`
    ///   and `.unacceptableContentType` with the start of the body, `.decodingFailed`, or any other error that ends the
    ///   transfer.
    func value<S: ResponseSerializer>(of call: Call, using serializer: S) async throws(NetworkError) -> S.Output

    /// Returns the cold transfer of a call: it starts when it is first awaited, iterated or `start()`ed.
    ///
    /// The transfer's `value` is the serializer's output for an acceptable response; `bytes` and `stream` do not
    /// check the response.
    /// - Parameters:
    ///   - call: The call to make; an invalid call makes the transfer throw when the transfer is used.
    ///   - serializer: Turns the response into the value.
    func transfer<S: ResponseSerializer>(_ call: Call, using serializer: S) -> Transfer<S.Output>

    /// Returns the elements of a call's response as they arrive; the first step of the iteration makes the call.
    ///
    /// - Parameters:
    ///   - call: The call to make.
    ///   - serializer: Turns the body into elements.
    func stream<S: StreamSerializer>(_ call: Call, using serializer: S) -> TransferSequence<S.Element>

    /// Returns the cold transfer of a download.
    ///
    /// - Parameters:
    ///   - call: A GET or POST call; an invalid call makes the transfer throw when the transfer is used.
    ///   - destination: The destination of the file; nil uses the session's destination for downloads.
    ///   - overwrite: The policy for an existing file of the same name.
    ///   - checksum: The expected digest of the file; nil checks only the digests that the server states (RFC 9530).
    ///   - downloadOptions: The options of the download.
    func downloadTransfer(
        _ call: Call, to destination: DownloadDestination?, overwrite: DownloadDestination.Overwrite,
        expecting checksum: Checksum?, downloadOptions: DownloadOptions
    ) -> Transfer<DownloadedFile>
}

extension APIClient {
    /// JSON, the default.
    public var responseFormat: any ResponseFormat { JSON() }

    /// Returns the value of the call's transfer.
    ///
    /// - Throws: The `NetworkError` that ends the transfer, of any kind.
    public func value<S: ResponseSerializer>(
        of call: Call, using serializer: S
    ) async throws(NetworkError) -> S.Output {
        try await transfer(call, using: serializer).value
    }
}
