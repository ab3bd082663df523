// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// What went wrong, in the words of a server that speaks `application/problem+json` (RFC 9457 §3).
///
/// Members of a wrong type are ignored (RFC 9457 §3.1).
///
/// ```swift
/// if let problem = error.decode(ProblemDetails.self), problem.type == "https://example.com/out-of-credit" {
///     print(problem.detail ?? "", problem.extensions["balance"] ?? .null)
/// }
/// ```
public struct ProblemDetails: Sendable, Hashable {
    /// The kind of problem, a URI; "about:blank" when it is no other than the status.
    public var type: String
    /// What the kind is called, for people.
    public var title: String?
    /// The status the server chose; the response may have another one, from a proxy.
    public var status: Status?
    /// What happened this time, for people.
    public var detail: String?
    /// Which occurrence it is, a URI.
    public var instance: String?
    /// All other members.
    public var extensions: [String: JSONValue]

    /// A problem of its parts; nothing is known unless given.
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
    // Taken and given as a dictionary, whose keys no strategy of a decoder touches.

    /// Decodes an object.
    /// - Throws: `DecodingError` when it is none.
    public init(from decoder: any Decoder) throws {
        self.init(members: try decoder.singleValueContainer().decode([String: JSONValue].self))
    }

    /// The problem that an object describes.
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
    /// - Throws: What the encoder throws.
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
