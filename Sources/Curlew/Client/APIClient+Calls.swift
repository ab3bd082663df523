// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension APIClient {
    // MARK: Any method

    /// Makes a request of any method and decodes the response.
    ///
    /// - Parameters:
    ///   - method: The method, such as `.options` or `"REPORT"`.
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(method, path, body, query: query, fields: fields, options: options),
            using: Serializers.Formatted<T>())
    }

    /// Makes a request of any method and returns the serializer's output for the response; by default it discards the
    /// body.
    ///
    /// - Parameters:
    ///   - method: The method, such as `.options` or `"REPORT"`.
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<S: ResponseSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a request of any method, with its parameters in the query or in the body, and decodes the response.
    ///
    /// GET, HEAD and DELETE send the parameters in the query; other methods send them in the body, in the client's
    /// format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - parameters: Names and values of any type.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func request<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, parameters: Request.Query, fields: HeaderChanges = [:],
        options: Request.Options = [],
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await request(
            method, path, parameters: parameters, fields: fields, options: options, using: Serializers.Formatted<T>())
    }

    /// Makes a request of any method, with its parameters in the query or in the body, and returns the serializer's
    /// output.
    ///
    /// GET, HEAD and DELETE send the parameters in the query; other methods send them in the body, in the client's
    /// format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - parameters: Names and values of any type.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value; the default decodes any JSON value in the client's format.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    @discardableResult
    public func request<S: ResponseSerializer>(
        _ method: Method, _ path: Path, parameters: Request.Query, fields: HeaderChanges = [:],
        options: Request.Options = [],
        using serializer: S = Serializers.Formatted<JSONValue?>()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(method, path, parameters: parameters, fields: fields, options: options), using: serializer)
    }

    // MARK: Transfers

    /// Returns the cold transfer of a call whose response is decoded.
    ///
    /// ```swift
    /// let task = api.transfer(.post, "photos", .file("alps.jpg", type: "image/jpeg"), as: Photo.self)
    /// for await progress in task.progress { print(progress.fraction ?? 0) }
    /// let photo = try await task.value
    /// ```
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    public func transfer<T: Decodable & Sendable>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type
    ) -> Transfer<T> {
        transfer(
            Call(method, path, body, query: query, fields: fields, options: options), using: Serializers.Formatted<T>())
    }

    /// Returns the cold transfer of a call with a serializer for the response; the default serializer discards the
    /// body.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    public func transfer<S: ResponseSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) -> Transfer<S.Output> {
        transfer(Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    // MARK: Streams

    /// Returns the elements of a GET request's response as they arrive; the default elements are chunks of bytes.
    ///
    /// ```swift
    /// for try await chunk in api.stream("video") { file.append(contentsOf: chunk) }
    /// ```
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the body into elements.
    public func stream<S: StreamSerializer>(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        using serializer: S = Streams.Chunks()
    ) -> TransferSequence<S.Element> {
        stream(Call(.get, path, query: query, fields: fields, options: options), using: serializer)
    }

    /// Returns the elements of a response as they arrive; the default elements are chunks of bytes.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the body into elements.
    public func stream<S: StreamSerializer>(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Streams.Chunks()
    ) -> TransferSequence<S.Element> {
        stream(Call(method, path, body, query: query, fields: fields, options: options), using: serializer)
    }
}
