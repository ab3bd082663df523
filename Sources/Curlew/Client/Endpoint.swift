// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A call as a value that knows what it gives, and what a refusal says.
///
/// Only the path has to be given; `Output` alone says how the response is read: a `Decodable` type by the client's format,
/// `Data` as the bytes that came; without an `Output` nothing is read. Any other serializer is a member.
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
    /// What it gives; nothing unless said otherwise.
    associatedtype Output: Sendable
    /// Turns the response into it.
    associatedtype Serializer: ResponseSerializer<Output>
    /// What the body says of a response that is refused; RFC 9457's problem details unless said otherwise.
    associatedtype Problem: Decodable & Sendable = ProblemDetails

    /// The method; GET unless said otherwise.
    var method: Method { get }
    /// Where it goes, below the client's base URL.
    var path: Path { get }
    /// Joins the client's query; empty unless said otherwise.
    var query: Query { get }
    /// What differs from the client's fields; nothing unless said otherwise.
    var fields: HeaderChanges { get }
    /// What is sent; nothing unless said otherwise.
    var body: Body? { get }
    /// What differs from the client's options; nothing unless said otherwise.
    var options: Request.Options { get }
    /// Turns the response into the output.
    var serializer: Serializer { get }

    /// What a refusal says, nil when that is not to be read.
    ///
    /// Called in the task of whoever awaits the output; it is read by the client's format, or as JSON, unless said
    /// otherwise.
    /// - Parameters:
    ///   - refusal: Of kind `unacceptableStatus`, with the head and up to 64 KiB of the body.
    ///   - format: The client's.
    func problem(in refusal: NetworkError, as format: any ResponseFormat) -> Problem?
}

extension Endpoint {
    /// GET.
    public var method: Method { .get }
    /// Nothing.
    public var query: Query { [:] }
    /// Nothing.
    public var fields: HeaderChanges { [:] }
    /// Nothing.
    public var body: Body? { nil }
    /// Nothing.
    public var options: Request.Options { [] }

    /// The body read by the client's format, and if that cannot, as JSON.
    public func problem(in refusal: NetworkError, as format: any ResponseFormat) -> Problem? {
        refusal.decode(Problem.self, by: format) ?? refusal.decode(Problem.self)
    }

    /// The call that it is.
    public var call: Call { Call(method, path, body, query: query, fields: fields, options: options) }
}

extension Endpoint where Output: Decodable {
    /// Reads the client's format; `Data` is the bytes as they came.
    public var serializer: FormatSerializer<Output> { FormatSerializer() }
}

extension Endpoint where Output == Void {
    /// Reads nothing.
    public var serializer: EmptySerializer { EmptySerializer() }
}

extension APIClient {
    /// Sends an endpoint and gives its output.
    ///
    /// - Parameters:
    ///   - endpoint: What is asked for.
    ///   - options: What differs from the endpoint's options.
    /// - Throws: ``APIError``: `.rejected` with what the server said of it, `.failed` for everything else.
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

    /// The cold transfer of an endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: What is asked for.
    ///   - options: What differs from the endpoint's options.
    public func transfer<E: Endpoint>(_ endpoint: E, options: Request.Options = []) -> Transfer<E.Output> {
        var call = endpoint.call
        call.options = call.options.merging(options)
        return transfer(call, using: endpoint.serializer)
    }
}
