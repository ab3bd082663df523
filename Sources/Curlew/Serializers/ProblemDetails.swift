// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The description of a failure that a server sends as `application/problem+json` (RFC 9457 §3).
///
/// Members of a wrong type are ignored (RFC 9457 §3.1).
///
/// ```swift
/// if let problem = error.decode(ProblemDetails.self), problem.type == "https://example.com/out-of-credit" {
///     print(problem.detail ?? "", problem.extensions["balance"] ?? .null)
/// }
/// ```
public struct ProblemDetails: Sendable, Hashable {
    /// The kind of problem, a URI; "about:blank" when the status alone describes it.
    public var type: String
    /// A name of the kind, for people.
    public var title: String?
    /// The status that the server chose; a proxy may have changed the status of the response.
    public var status: Status?
    /// An explanation of this occurrence, for people.
    public var detail: String?
    /// The identifier of this occurrence, a URI.
    public var instance: String?
    /// All other members.
    public var extensions: [String: JSONValue]

    /// Creates a problem from its parts; parts that are not given are nil or empty.
    public init(
        type: String = "about:blank", title: String? = nil, status: Status? = nil, detail: String? = nil,
        instance: String? = nil, extensions: [String: JSONValue] = [:]
    ) {
        self.type = type
        self.title = title
        self.status = status
        self.detail = detail
        self.instance = instance
        self.extensions = extensions
    }
}

extension ProblemDetails: Codable {
    // Coded as a dictionary, because a decoder's key strategy does not change the keys of dictionaries.

    /// Decodes an object.
    /// - Throws: `DecodingError` when the value is not an object.
    public init(from decoder: any Decoder) throws {
        self.init(members: try decoder.singleValueContainer().decode([String: JSONValue].self))
    }

    /// Creates the problem that an object describes.
    init(members: [String: JSONValue]) {
        var members = members
        type = members.removeValue(forKey: "type")?.asString ?? "about:blank"
        title = members.removeValue(forKey: "title")?.asString
        status = members.removeValue(forKey: "status")?.asInt.map { Status($0) }
        detail = members.removeValue(forKey: "detail")?.asString
        instance = members.removeValue(forKey: "instance")?.asString
        extensions = members
    }

    /// Encodes an object, without the members that are nil.
    /// - Throws: The error that the encoder throws.
    public func encode(to encoder: any Encoder) throws {
        var members = extensions
        members["type"] = .string(type)
        members["title"] = title.map { .string($0) }
        members["status"] = status.map { .integer(Int64($0.code)) }
        members["detail"] = detail.map { .string($0) }
        members["instance"] = instance.map { .string($0) }
        var container = encoder.singleValueContainer()
        try container.encode(members)
    }
}
