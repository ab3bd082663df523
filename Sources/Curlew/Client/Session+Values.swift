// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Session {
    /// Sends a request and decodes its response.
    ///
    /// A client adds a base URL and shared settings; a single absolute URL needs no client:
    ///
    /// ```swift
    /// let user = try await Session.shared.value(for: "https://api.example.com/users/7", as: User.self)
    /// ```
    ///
    /// - Parameters:
    ///   - request: A request, or a URL as a string literal; `options.statuses` and `options.accepting` select the
    ///     acceptable responses, and `Accept` lists the formats unless the request sets it.
    ///   - type: The type that JSON decodes; `Data` gives the received bytes unchanged.
    /// - Throws: `NetworkError`: `.unacceptableStatus` and `.unacceptableContentType` with the start of the body,
    ///   `.decodingFailed`, or any error of ``data(for:)``.
    public nonisolated func value<T: Decodable & Sendable>(
        for request: Request, as type: T.Type = T.self
    ) async throws(NetworkError) -> T {
        try await value(for: request, using: Serializers.Formatted<T>())
    }

    /// Sends a request and returns the serializer's output for its response.
    ///
    /// The output is made in the caller's task, but not on the caller's actor.
    ///
    /// - Parameters:
    ///   - request: A request, or a URL as a string literal.
    ///   - serializer: Turns the response into the value; where it leaves the format open, it is JSON.
    /// - Throws: `NetworkError`, as ``value(for:as:)`` does.
    public nonisolated func value<S: ResponseSerializer>(
        for request: Request, using serializer: S
    ) async throws(NetworkError) -> S.Output {
        let serializer = serializer.bound(to: JSON())
        let types = serializer.accepts
        return try await core.value(of: request.accepting(types), types, using: serializer)
    }

    /// Creates a cold transfer whose value is decoded from JSON; `bytes` and `stream` do not check the response.
    ///
    /// - Parameters:
    ///   - request: A request, or a URL as a string literal; with an invalid request the transfer throws when it is
    ///     used.
    ///   - type: The type that JSON decodes; `Data` gives the received bytes unchanged.
    public nonisolated func transfer<T: Decodable & Sendable>(_ request: Request, as type: T.Type) -> Transfer<T> {
        transfer(request, using: Serializers.Formatted<T>())
    }

    /// Creates a cold transfer whose value is the serializer's output for an acceptable response; `bytes` and `stream`
    /// do not check the response.
    ///
    /// - Parameters:
    ///   - request: A request, or a URL as a string literal; with an invalid request the transfer throws when it is
    ///     used.
    ///   - serializer: Turns the response into the value; where it leaves the format open, it is JSON.
    public nonisolated func transfer<S: ResponseSerializer>(
        _ request: Request, using serializer: S
    ) -> Transfer<S.Output> {
        let serializer = serializer.bound(to: JSON())
        let request = request.accepting(serializer.accepts)
        return Transfer(core.transfer(request), ResponseRule(request, serializer.accepts), using: serializer)
    }

    /// Returns the elements of a response as they arrive; the first step of the iteration sends the request.
    ///
    /// - Parameters:
    ///   - request: A request, or a URL as a string literal.
    ///   - serializer: Turns the body into elements.
    public nonisolated func stream<S: StreamSerializer>(
        _ request: Request, using serializer: S
    ) -> TransferSequence<S.Element> {
        let request = request.accepting(serializer.accepts)
        let (lifetime, rule) = (core.transfer(request), ResponseRule(request, serializer.accepts))
        return TransferSequence { SerializedReader(lifetime, serializer, rule) }
    }
}

extension SessionCore {
    /// Sends a request and returns the serializer's output for an acceptable response.
    ///
    /// - Parameters:
    ///   - request: The request with its `Accept` field.
    ///   - types: The media types that the serializer reads.
    ///   - serializer: A serializer that is bound to a format.
    func value<S: ResponseSerializer>(
        of request: Request, _ types: [MediaType], using serializer: S
    ) async throws(NetworkError) -> S.Output {
        if serializer.readsArrivingBody {
            return try await ResponseRule(request, types).arrivingOutput(of: serializer, from: transfer(request))
        }
        var request = request
        let isBodyWanted = S.self != Serializers.Empty.self && S.self != Serializers.Head.self
        if !isBodyWanted { request.options.responseLimit = .bytes(Int64(NetworkError.errorBodyLimit)) }
        let rule = ResponseRule(request, types)
        let (body, head): (Data, ResponseHead)
        do throws(NetworkError) {
            (body, head) = try await data(for: request)
        } catch {
            (body, head) = try rule.receivedPart(of: error, ignoresRest: !isBodyWanted)
        }
        return try await rule.output(of: serializer, body, head)
    }
}

extension Transfer {
    /// Creates the transfer of a run whose value is a serializer's output.
    init<S: ResponseSerializer>(
        _ lifetime: TransferLifetime, _ rule: ResponseRule, using serializer: S
    ) where S.Output == Output {
        let lazyOutput = Lazy<Output>()
        self.init(
            lifetime,
            output: { response throws(NetworkError) in
                try await lazyOutput.value { () async throws(NetworkError) in
                    try await rule.output(of: serializer, response.value, response.head)
                }
            }, failure: rule.errorToReport)
    }
}

extension Request {
    /// Returns the request with an `Accept` field for the media types, unless it has one.
    fileprivate func accepting(_ types: [MediaType]) -> Request {
        guard !fields.contains(.accept), let field = MediaType.acceptField(for: options.accepting ?? types) else {
            return self
        }
        var request = self
        request.fields[.accept] = field
        return request
    }
}
