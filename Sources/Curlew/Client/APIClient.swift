// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Whatever makes calls: a ``Client``, or something that wraps one.
///
/// Its verbs (`get`, `post`, `send` and so on) are there for every conformer, so code that needs an API takes
/// `any APIClient` and is given the real client, a recording one, or one over a session that answers by itself.
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
/// A verb awaits a value, `transfer` gives the run to watch, pause and cancel, `stream` gives a sequence; all take the
/// same arguments in the same order. What is awaited is decoded in the caller's task, not on its actor; the elements of a
/// stream are decoded where they are iterated.
public protocol APIClient: Sendable {
    /// What reads its responses, so also what they say of a refusal; JSON unless said otherwise.
    ///
    /// Whoever wraps a client hands on the client's.
    var responseFormat: any ResponseFormat { get }

    /// Makes a call and gives what the serializer makes of its response.
    ///
    /// - Parameters:
    ///   - call: What is asked for.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`: `.invalidRequest` and `.encodingFailed` before anything is sent, `.unacceptableStatus` and
    ///   `.unacceptableContentType` with the start of the body, `.decodingFailed`, or whatever else ends a transfer.
    func value<S: ResponseSerializer>(of call: Call, using serializer: S) async throws(NetworkError) -> S.Output

    /// The cold transfer of a call: it starts when it is first awaited, iterated or `start()`ed.
    ///
    /// Its `value` is what the serializer makes of an acceptable response; `bytes` and `stream` give whatever comes.
    /// - Parameters:
    ///   - call: What is asked for; one that makes no sense makes the transfer throw when it is used.
    ///   - serializer: Turns the response into the value.
    func transfer<S: ResponseSerializer>(_ call: Call, using serializer: S) -> Transfer<S.Output>

    /// The elements of a call's response as they arrive; the call is made with the first step.
    ///
    /// - Parameters:
    ///   - call: What is asked for.
    ///   - serializer: Turns the body into elements.
    func stream<S: StreamSerializer>(_ call: Call, using serializer: S) -> TransferSequence<S.Element>
}

extension APIClient {
    /// JSON.
    public var responseFormat: any ResponseFormat { JSON() }

    /// The value of the call's transfer.
    ///
    /// - Throws: `NetworkError` of any kind that the transfer ends with.
    public func value<S: ResponseSerializer>(
        of call: Call, using serializer: S
    ) async throws(NetworkError) -> S.Output {
        try await transfer(call, using: serializer).value
    }
}
