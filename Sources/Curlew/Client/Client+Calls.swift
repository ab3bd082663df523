// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Client {
    // MARK: Calls

    /// Makes a call and returns the serializer's output for its response.
    ///
    /// - Throws: `NetworkError`, as ``APIClient/value(of:using:)`` describes.
    public func value<S: ResponseSerializer>(
        of call: Call, using serializer: S
    ) async throws(NetworkError) -> S.Output {
        let serializer = serializer.bound(to: responses)
        let types = serializer.accepts
        return try await session.core.value(of: try request(for: call, accepting: types), types, using: serializer)
    }

    /// Returns the cold transfer of a call.
    public func transfer<S: ResponseSerializer>(_ call: Call, using serializer: S) -> Transfer<S.Output> {
        let serializer = serializer.bound(to: responses)
        let (lifetime, rule) = run(of: call, accepting: serializer.accepts)
        return Transfer(lifetime, rule, using: serializer)
    }

    /// Returns the elements of a call's response as they arrive.
    public func stream<S: StreamSerializer>(_ call: Call, using serializer: S) -> TransferSequence<S.Element> {
        let (lifetime, rule) = run(of: call, accepting: serializer.accepts)
        return TransferSequence { SerializedReader(lifetime, serializer, rule) }
    }

    /// Returns the run of a call; for an invalid call, the run fails immediately with the error.
    private func run(of call: Call, accepting types: [MediaType]) -> (TransferLifetime, ResponseRule) {
        do throws(NetworkError) {
            let request = try request(for: call, accepting: types)
            return (session.core.transfer(request), ResponseRule(request, types))
        } catch {
            let request = error.request ?? baseRequest(for: call, to: base.url(of: call.path.text).text)
            return (session.core.transfer(request, refusedBy: error), ResponseRule(request, types))
        }
    }

    // MARK: Requests

    /// Returns the request of a call with all settings of the client, for code that sends or signs the request itself.
    ///
    /// - Parameters:
    ///   - call: The call to make.
    ///   - types: The media types of the `Accept` field, if neither the client nor the call sets that field; an empty
    ///     list adds no field.
    /// - Throws: `NetworkError` of kind `invalidRequest` or `encodingFailed`.
    public func request(for call: Call, accepting types: [MediaType] = [.any]) throws(NetworkError) -> Request {
        let (url, isCrossOrigin) = base.url(of: call.path.text)
        var request = baseRequest(for: call, to: url)
        if let misleading = call.path.misleading { throw .misleadingPath(misleading, request) }
        guard !base.excludes(call.path.text) else { throw .leavingPath(request) }
        request.interceptors = requestInterceptors(isCrossOrigin: isCrossOrigin)
        request.trust = trust
        do {
            // Another origin does not get the client's query: it may contain keys.
            let own =
                isCrossOrigin ? Request.Query() : configuration.query.removing(namesIn: URLReference.query(of: url))
            let query = try own.merging(call.query).text(configuration.queryEncoder)
            request.url = Curlew.url(url, appending: query)
            if let body = call.body {
                let (bytes, type) = try body.encoded(by: requests)
                request.body = bytes
                if let type, !bytes.isNone { request.fields[.contentType] = type.description }
            }
        } catch {
            throw .encoding(error, request: request)
        }
        let accepted = request.options.accepting ?? types
        if let accept = accepted == ownTypes.types ? ownTypes.field : MediaType.acceptField(for: accepted) {
            request.fields[.accept] = accept
        }
        request.apply(
            isCrossOrigin || request.options.isAnonymous ? fieldsWithoutCredentials(for: request) : configuration.fields
        )
        // The client's Content-Type does not apply to a request without a body.
        if request.body.isNone { request.fields.remove(.contentType) }
        request.apply(call.fields)
        return request
    }

    private func requestInterceptors(isCrossOrigin: Bool) -> [any Interceptor] {
        if isCrossOrigin { return interceptors.filter { !($0 is any Authenticator) } }
        return auth.map { interceptors + [$0] } ?? interceptors
    }

    /// Returns the client's fields without credentials, for requests to other origins and anonymous requests.
    private func fieldsWithoutCredentials(for request: Request) -> HeaderChanges {
        let policies = [request.options.redirects, session.configuration.redirects].compactMap(\.self)
        return configuration.fields.withoutSensitiveFields(and: policies.flatMap(\.sensitiveFields))
    }

    /// Returns the request of a call before any step that can fail.
    private func baseRequest(for call: Call, to url: String) -> Request {
        Request(call.method, url, options: configuration.options.merging(call.options))
    }
}

extension Request {
    /// Sets and removes fields.
    fileprivate mutating func apply(_ changes: HeaderChanges) {
        if changes.isEmpty { return }
        for name in changes.removed {
            fields.remove(name)
            withheld.append(name)
        }
        if !withheld.isEmpty { withheld.removeAll { changes.fields.contains($0) } }
        fields.merge(changes.fields)
    }
}

extension MediaType {
    /// Returns the `Accept` field for a list of readable types; nil if no field is needed.
    static func acceptField(for types: [MediaType]) -> String? {
        let ranges = types.filter(\.isAcceptable)
        return ranges.isEmpty ? nil : ranges.map(\.description).joined(separator: ", ")
    }
}

extension NetworkError {
    fileprivate static func leavingPath(_ request: Request) -> NetworkError {
        NetworkError(
            invalid: .path, "The path leaves the base URL.",
            hint: "Remove “..” segments and absolute URLs, or create the base URL with BaseURL.Joining.resolved.",
            request: request)
    }

    fileprivate static func misleadingPath(_ what: Path.Misleading, _ request: Request) -> NetworkError {
        NetworkError(
            invalid: .path,
            "Interpolation \(what.number) makes a path segment “\(what.segment)”, which names another resource.",
            hint: "Check the value; use Path(raw:) for a path that has such segments on purpose.", request: request)
    }
}
