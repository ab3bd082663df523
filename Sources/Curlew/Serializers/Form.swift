// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Forms: names and values as `application/x-www-form-urlencoded`, in AFNetworking's default style.
///
/// ```swift
/// let api = Client("https://api.example.com", requests: .form)     // forms out, JSON in
/// ```
public struct Form: RequestFormat {
    /// The rules for names and values.
    public let encoder: Request.QueryEncoder

    /// Creates a format with the given rules; AFNetworking's unless given.
    public init(_ encoder: Request.QueryEncoder = Request.QueryEncoder()) { self.encoder = encoder }

    /// `application/x-www-form-urlencoded`.
    public var contentType: MediaType { .form }

    /// Returns the pairs, joined by "&".
    /// - Throws: `EncodingError` when the value is not keyed, or the error of the value's own encoding.
    public func encode(_ value: some Encodable) throws -> Data {
        if let query = value as? Request.Query { return Data(try query.text(encoder).utf8) }
        return Data(try encoder.encode(value).utf8)
    }
}

extension RequestFormat where Self == Form {
    /// Forms by AFNetworking's rules.
    public static var form: Form { Form() }
}
