// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

// The verbs: a method's name, then path, body, query, fields, options, and last what is made of the response. Each can be
// asked for a `Decodable` value, which the client's format reads, or for what a serializer makes.

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
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func get<T: Decodable & Sendable>(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.get, path, query: query, fields: fields, options: options), using: FormatSerializer<T>())
    }

    /// Makes a GET request (RFC 9110 §9.3.1) and gives what a serializer makes of the response.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func get<S: ResponseSerializer>(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = [],
        using serializer: S
    ) async throws(NetworkError) -> S.Output {
        try await value(of: Call(.get, path, query: query, fields: fields, options: options), using: serializer)
    }

    /// A GET request of which nothing is read: say what to read.
    ///
    /// - Throws: Nothing, since it cannot be called.
    @available(*, unavailable, message: "say what to read: `as: User.self`, `using: .bytes` or `using: .empty`")
    public func get(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = []
    ) async throws(NetworkError) {}

    /// Makes a HEAD request (RFC 9110 §9.3.2) and gives the response's head.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does; `.unacceptableStatus` for all but 200…299.
    public func head(
        _ path: Path, query: Query = [:], fields: HeaderChanges = [:], options: Request.Options = []
    ) async throws(NetworkError) -> ResponseHead {
        try await value(
            of: Call(.head, path, query: query, fields: fields, options: options), using: HeadSerializer())
    }

    // MARK: POST, PUT, PATCH and DELETE

    /// Makes a POST (RFC 9110 §9.3.3) request and decodes the response.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func post<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.post, path, body, query: query, fields: fields, options: options),
            using: FormatSerializer<T>())
    }

    /// Makes a POST (RFC 9110 §9.3.3) request and gives what a serializer makes of the response: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func post<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.post, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a PUT (RFC 9110 §9.3.4) request and decodes the response.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func put<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.put, path, body, query: query, fields: fields, options: options),
            using: FormatSerializer<T>())
    }

    /// Makes a PUT (RFC 9110 §9.3.4) request and gives what a serializer makes of the response: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func put<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.put, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a PATCH (RFC 5789) request and decodes the response.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func patch<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.patch, path, body, query: query, fields: fields, options: options),
            using: FormatSerializer<T>())
    }

    /// Makes a PATCH (RFC 5789) request and gives what a serializer makes of the response: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func patch<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.patch, path, body, query: query, fields: fields, options: options), using: serializer)
    }

    /// Makes a DELETE (RFC 9110 §9.3.5) request and decodes the response.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - type: What is decoded by the client's format; `Data` is the bytes as they came.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func delete<T: Decodable & Sendable>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(
            of: Call(.delete, path, body, query: query, fields: fields, options: options),
            using: FormatSerializer<T>())
    }

    /// Makes a DELETE (RFC 9110 §9.3.5) request and gives what a serializer makes of the response: nothing unless said otherwise.
    ///
    /// - Parameters:
    ///   - path: Where it goes, below the base URL.
    ///   - body: What is sent; nothing unless given.
    ///   - query: Joins the client's query.
    ///   - fields: What differs from the client's fields; nil leaves one out.
    ///   - options: What differs from the client's options.
    ///   - serializer: Turns the response into the value.
    /// - Throws: `NetworkError`, as ``value(of:using:)`` does.
    public func delete<S: ResponseSerializer>(
        _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = [], using serializer: S = EmptySerializer()
    ) async throws(NetworkError) -> S.Output {
        try await value(
            of: Call(.delete, path, body, query: query, fields: fields, options: options), using: serializer)
    }
}
