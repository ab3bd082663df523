// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A call of a client, without the base URL and the settings that the client's calls share.
///
/// ```swift
/// let call = Call(.get, "users", query: ["page": 2], options: .timeout(.seconds(5)))
/// let users = try await api.value(of: call, using: .json([User].self))
/// ```
public struct Call: Sendable {
    /// The method.
    public var method: Method
    /// The path below the base URL.
    public var path: Path
    /// Parameters to add to the client's query; they replace client parameters of the same name.
    public var query: Request.Query
    /// Changes to the client's fields.
    public var fields: HeaderChanges
    /// The body to send; nil for no body.
    public var body: Body?
    /// Options that override the client's options.
    public var options: Request.Options

    /// Creates a call from its parts.
    public init(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Request.Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.body = body
        self.options = options
    }

    /// Creates a call with parameters, in the query or in the body.
    ///
    /// GET, HEAD and DELETE send them in the query by default; other methods send them in the body, in the client's
    /// format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: The path below the base URL.
    ///   - parameters: Names and values of any type; an empty list adds no body.
    ///   - inQuery: The methods that send the parameters in the query.
    ///   - fields: Changes to the client's fields.
    ///   - options: Options that override the client's options.
    public init(
        _ method: Method, _ path: Path, parameters: Request.Query, inQuery: Set<Method> = [.get, .head, .delete],
        fields: HeaderChanges = [:], options: Request.Options = []
    ) {
        let isInQuery = inQuery.contains(method)
        self.init(
            method, path, isInQuery || parameters.isEmpty ? nil : .encoding(parameters),
            query: isInQuery ? parameters : [:], fields: fields, options: options)
    }
}

extension Call: CustomStringConvertible, CustomReflectable {
    /// The method and the path, redacted.
    public var description: String { "\(method.rawValue.escapingControls) \(path)" }

    /// A mirror that shows only the description.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
