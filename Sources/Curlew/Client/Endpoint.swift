// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A call as a value that declares its output and the problem type of refused responses.
///
/// Only the path is required. `Output` selects the serializer: the client's format decodes a `Decodable` type, `Data`
/// is the received bytes, and an endpoint without `Output` ignores the body. Declare `serializer` to use any other
/// serializer.
///
/// ```swift
/// struct CreateUser: Endpoint {
///     typealias Output = User
///     typealias Problem = Invalid
///
///     let draft: Draft
///     let method = Method.post
///     let path: Path = "users"
///     var body: Body? { .encoding(draft) }
/// }
///
/// do {
///     show(try await api.send(CreateUser(draft: draft)))
/// } catch {
///     mark(error.problem?.fields ?? [:])      // the error is an APIError<Invalid>
/// }
/// ```
public protocol Endpoint: Sendable {
    /// The output; `Void` by default.
    associatedtype Output: Sendable
    /// The type of the serializer that turns the response into the output.
    associatedtype Serializer: ResponseSerializer<Output>
    /// The type of a refused response's body; the problem details of RFC 9457 by default.
    associatedtype Problem: Decodable & Sendable = ProblemDetails

    /// The method; GET by default.
    var method: Method { get }
    /// The path below the client's base URL.
    var path: Path { get }
    /// Parameters to add to the client's query; they replace client parameters of the same name, and are empty by
    /// default.
    var query: Request.Query { get }
    /// Changes to the client's fields; empty by default.
    var fields: HeaderChanges { get }
    /// The body to send; no body by default.
    var body: Body? { get }
    /// Options that override the client's options; empty by default.
    var options: Request.Options { get }
    /// The serializer that turns the response into the output.
    var serializer: Serializer { get }

    /// Returns the problem in a refused response; nil if its body is not to be read.
    ///
    /// `send` calls this method in the task that awaits the output. The default implementation decodes the body with
    /// the client's format, and as JSON if that fails.
    /// - Parameters:
    ///   - refusal: An error of kind `unacceptableStatus`, with the head and up to 64 KiB of the body.
    ///   - format: The client's response format.
    func problem(in refusal: NetworkError, as format: any ResponseFormat) -> Problem?
}

extension Endpoint {
    /// GET, the default.
    public var method: Method { .get }
    /// Empty, the default.
    public var query: Request.Query { [:] }
    /// Empty, the default.
    public var fields: HeaderChanges { [:] }
    /// No body, the default.
    public var body: Body? { nil }
    /// Empty, the default.
    public var options: Request.Options { [] }

    /// Decodes the body with the client's format, and as JSON if that fails.
    public func problem(in refusal: NetworkError, as format: any ResponseFormat) -> Problem? {
        refusal.decode(Problem.self, by: format) ?? refusal.decode(Problem.self)
    }

    /// The call that the endpoint describes.
    public var call: Call { Call(method, path, body, query: query, fields: fields, options: options) }
}

extension Endpoint where Output: Decodable {
    /// A serializer that decodes with the client's format; `Data` gives the received bytes unchanged.
    public var serializer: Serializers.Formatted<Output> { Serializers.Formatted() }
}

extension Endpoint where Output == Void {
    /// A serializer that discards the body.
    public var serializer: Serializers.Empty { Serializers.Empty() }
}

extension APIClient {
    /// Sends an endpoint's call and returns its output.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint to call.
    ///   - options: Options that override the endpoint's options.
    /// - Throws: ``APIError``: `.rejected` with the server's problem, `.failed` for any other failure.
    public func send<E: Endpoint>(
        _ endpoint: E, options: Request.Options = []
    ) async throws(APIError<E.Problem>) -> E.Output {
        var call = endpoint.call
        call.options = call.options.merging(options)
        do throws(NetworkError) {
            return try await value(of: call, using: endpoint.serializer)
        } catch {
            throw APIError(error) { endpoint.problem(in: $0, as: responseFormat) }
        }
    }

    /// Returns the cold transfer of an endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint to call.
    ///   - options: Options that override the endpoint's options.
    public func transfer<E: Endpoint>(_ endpoint: E, options: Request.Options = []) -> Transfer<E.Output> {
        var call = endpoint.call
        call.options = call.options.merging(options)
        return transfer(call, using: endpoint.serializer)
    }
}
