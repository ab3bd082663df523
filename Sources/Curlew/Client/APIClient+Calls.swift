// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension APIClient {
    // MARK: Any method

    /// Makes a request of any method and decodes the response.
    ///
    /// - Parameters:
    ///   - method: The method, such as `.options` or `"REPORT"`.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(method, path, body, query: query, fields: fields, options: options),
            using: FormatSerializer<T>())
    }

    /// Makes a request of any method and gives what a serializer makes of the response: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - method: The method, such as `.options` or `"REPORT"`.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<S: ResponseSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a request of any method, whose parameters go where that method has them, and decodes the response.
    ///
    /// GET, HEAD and DELETE have them in the query, others in the body in the client's format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - parameters: Names and values of any type.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, parameters: Query, fields: HeaderChanges = [:], options: Request.Options = [],
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await request(
            method, path, parameters: parameters, fields: fields, options: options, using: FormatSerializer<T>())
    }

    /// Makes a request of any method, whose parameters go where that method has them, and gives what a serializer makes of
    /// the response.
    ///
    /// GET, HEAD and DELETE have them in the query, others in the body in the client's format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - parameters: Names and values of any type.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value: whatever JSON it is, in the client's format, unless given.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    @discardableResult
    public func request<S: ResponseSerializer>(
        _ method: Method, _ path: Path, parameters: Query, fields: HeaderChanges = [:], options: Request.Options = [],
        using serializer: S = FormatSerializer<JSONValue?>()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(method, path, parameters: parameters, fields: fields, options: options), using: serializer)
    }

    // MARK: Transfers

    /// The cold transfer of a call whose response is decoded.
    ///
    /// ```swift
    /// let task = api.transfer(.post, "photos", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    /// for await progress in task.progress { print(progress.fraction ?? 0) }
    /// let photo = try await task.value
    /// ```
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    public func transfer<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type
    ) -> Transfer<T> {
        transfer(
            Call(method, path, body, query: query, fields: fields, options: options), using: FormatSerializer<T>())
    }

    /// The cold transfer of a call, of whose response a serializer makes something: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    public func transfer<S: ResponseSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) -> Transfer<S.Output> {
        transfer(Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    // MARK: Streams

    /// The elements of a GET request's response as they arrive: its bytes unless said otherwise.
    ///
    /// ```swift
    /// for try await chunk in api.stream("video") { file.append(contentsOf: chunk) }
    /// ```
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the body into elements.
    public func stream<S: StreamSerializer>(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        using serializer: S = Chunks()
    ) -> TransferSequence<S.Element> {
        stream(Call(.get, path, query: query, fields: fields, options: options), using: serializer)
    }

    /// The elements of a response as they arrive: its bytes unless said otherwise.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the body into elements.
    public func stream<S: StreamSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Chunks()
    ) -> TransferSequence<S.Element> {
        stream(Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }
}
