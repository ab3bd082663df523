// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// Each verb is named after its method and takes path, body, query, fields, options, and last the type or the serializer
// of the result. One overload returns a `Decodable` value that the client's format reads, the other the output of a
// serializer.

extension APIClient {
    // MARK: GET and HEAD

    /// Makes a GET request (RFC 9110 §9.3.1) and decodes the response.
    ///
    /// ```swift
    /// let user: User = try await api.get("users/42")
    /// let maybe = try await api.get("users/43", as: User?.self)      // nil for an empty body
    /// ```
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func get<T: Decodable & Sendable>(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.get, path, query: query, fields: fields, options: options), using: Serializers.Formatted<T>())
    }

    /// Makes a GET request (RFC 9110 §9.3.1) and returns the serializer's output for the response.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func get<S: ResponseSerializer>(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        using serializer: S
    ) async throws(NetworkError) -> S.Output {
        try await value(of: Call(.get, path, query: query, fields: fields, options: options), using: serializer)
    }

    /// Rejects a GET request without a result type at compile time; its message names the alternatives.
    ///
    /// - Throws: Never, since code cannot call it.
    @available(*, unavailable, message: "say what to read: `as: User.self`, `using: .bytes` or `using: .empty`")
    public func get(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = []
    ) async throws(NetworkError) {}

    /// Makes a HEAD request (RFC 9110 §9.3.2) and returns the response's head.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does; `.unacceptableStatus` for every status outside 200…299.
    public func head(
        _ path: Path, query: Request.Query = [:], fields: HeaderChanges = [:], options: Request.Options = []
    ) async throws(NetworkError) -> ResponseHead {
        try await value(
            of: Call(.head, path, query: query, fields: fields, options: options), using: Serializers.Head())
    }

    // MARK: POST, PUT, PATCH and DELETE

    /// Makes a POST request (RFC 9110 §9.3.3) and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func post<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.post, path, body, query: query, fields: fields, options: options),
            using: Serializers.Formatted<T>())
    }

    /// Makes a POST request (RFC 9110 §9.3.3) and returns the serializer's output; by default it discards the body.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func post<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.post, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a PUT request (RFC 9110 §9.3.4) and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func put<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.put, path, body, query: query, fields: fields, options: options),
            using: Serializers.Formatted<T>())
    }

    /// Makes a PUT request (RFC 9110 §9.3.4) and returns the serializer's output; by default it discards the body.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func put<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.put, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a PATCH request (RFC 5789) and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func patch<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.patch, path, body, query: query, fields: fields, options: options),
            using: Serializers.Formatted<T>())
    }

    /// Makes a PATCH request (RFC 5789) and returns the serializer's output; by default it discards the body.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func patch<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.patch, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a DELETE request (RFC 9110 §9.3.5) and decodes the response.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - type: The type that the client's format decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func delete<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.delete, path, body, query: query, fields: fields, options: options),
            using: Serializers.Formatted<T>())
    }

    /// Makes a DELETE request (RFC 9110 §9.3.5) and returns the serializer's output; by default it discards the body.
    ///
    /// - Parameters:
    ///   - path: The path below the base URL.
    ///   - body: The body to send; no body by default.
    ///   - query: Parameters to add to the client's query; they replace client parameters of the same name.
    ///   - fields: Changes to the client's fields; nil removes a field.
    ///   - options: Options that override the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func delete<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = Serializers.Empty()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.delete, path, body, query: query, fields: fields, options: options), using: serializer)
    }
}
