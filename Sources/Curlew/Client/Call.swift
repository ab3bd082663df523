// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What a client is asked for, before its base URL and what its calls have in common.
///
/// ```swift
/// let call = Call(.get, "users", query: ["page": 2], options: .timeout(.seconds(5)))
/// let users = try await api.value(of: call, using: .json([User].self))
/// ```
public struct Call: Sendable {
    /// The method.
    public var method: Method
    /// Where it goes, below the base URL.
    public var path: Path
    /// Joins the client's query; what stands in both is the call's.
    public var query: Query
    /// What differs from the client's fields.
    public var fields: HeaderChanges
    /// What is sent; nothing for nil.
    public var body: Body?
    /// What differs from the client's options.
    public var options: Request.Options

    /// A call of its parts.
    public init(
        _ method: Method, _ path: Path, _ body: Body? = nil, query: Query = [:], fields: HeaderChanges = [:],
        options: Request.Options = []
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.fields = fields
        self.body = body
        self.options = options
    }

    /// A call whose parameters go where its method has them: into the query for GET, HEAD and DELETE, else into the body
    /// in the client's format.
    ///
    /// - Parameters:
    ///   - method: The method.
    ///   - path: Where it goes, below the base URL.
    ///   - parameters: Names and values of any type; none, and there is no body.
    ///   - inQuery: The methods that have parameters in the query.
    ///   - fields: What differs from the client's fields.
    ///   - options: What differs from the client's options.
    public init(
        _ method: Method, _ path: Path, parameters: Query, inQuery: Set<Method> = [.get, .head, .delete],
        fields: HeaderChanges = [:], options: Request.Options = []
    ) {
        let isInQuery = inQuery.contains(method)
        self.init(
            method, path, isInQuery || parameters.isEmpty ? nil : .encoding(parameters),
            query: isInQuery ? parameters : [:], fields: fields, options: options)
    }
}

extension Call: CustomStringConvertible, CustomReflectable {
    /// Method and path, redacted.
    public var description: String { "\(method.rawValue.escapingControls) \(path)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
