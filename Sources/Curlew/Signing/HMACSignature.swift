// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Signs bodies with a key that both sides have (RFC 2104), as webhooks do, and tells for a receiver what is genuine.
///
/// A body that can be read only once is refused; a request without one has the signature of no bytes. Nothing else of the
/// request is signed, and no time: whoever sees a request can send it once more. Services that care sign the time, too:
/// ``BodySignature``.
///
/// Descriptions, errors and logs hide the signature where the field's name has "signature" in it.
///
/// ```swift
/// let hooks = HMACSignature(key: secret, field: "X-Hub-Signature-256", prefix: "sha256=")
/// let api = Client("https://example.com/hooks").with { $0.auth = hooks }
/// let isGenuine = hooks.isValid(receivedField, of: receivedBody)
/// ```
public struct HMACSignature: Authenticator {
    /// How the signature is written.
    public enum Encoding: String, Sendable, Hashable, CaseIterable, Codable {
        /// Lower-case digits; of either case where they are read.
        case hexadecimal
        /// Base64 (RFC 4648 §4) with padding.
        case base64
    }

    /// The field that has the signature.
    public let field: HeaderName
    /// What stands before the signature in the field.
    public let prefix: String
    /// The digest.
    public let algorithm: HMACAlgorithm
    /// How the signature is written.
    public let encoding: Encoding
    private let key: [UInt8]

    /// A signature by a key.
    ///
    /// - Parameters:
    ///   - key: The key's bytes; no description shows them.
    ///   - field: The field to set; "X-Signature" unless given.
    ///   - prefix: What stands before the signature; nothing unless given.
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - encoding: How the signature is written; hexadecimal unless given.
    public init(
        key: some Sequence<UInt8>, field: HeaderName = "X-Signature", prefix: String = "",
        algorithm: HMACAlgorithm = .sha256, encoding: Encoding = .hexadecimal
    ) {
        self.key = Array(key)
        self.field = field
        self.prefix = prefix
        self.algorithm = algorithm
        self.encoding = encoding
    }

    /// Signs the body and passes the request on.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that can be read only once, `.bodyFailed` when its source
    ///   fails, and whatever ends transfers.
    public func authenticate(
        _ request: Request, context: InterceptorContext, next: Next
    ) async throws -> IncomingResponse {
        var signed = request.sentAsItIs
        signed.fields[field] = text(of: try await SignableBody(request.body).hmac(algorithm, key: key))
        return try await next(signed)
    }

    /// What the field says of a body.
    ///
    /// - Parameter body: All bytes of the body.
    /// - Throws: `NetworkError` of kind `unsupported` where OpenSSL was told not to compute the digest.
    public func value(of body: some Sequence<UInt8>) throws(NetworkError) -> String {
        text(of: try .hmac(algorithm, key: key, of: body))
    }

    /// Whether a field's value is the signature of a body; it takes as long wherever the two differ.
    ///
    /// False, too, for a value without the prefix, and where OpenSSL was told not to compute the digest.
    /// - Parameters:
    ///   - value: What the field says.
    ///   - body: All bytes that came, before any is decoded.
    public func isValid(_ value: String, of body: some Sequence<UInt8>) -> Bool {
        guard value.hasPrefix(prefix), let expected = try? DigestValue.hmac(algorithm, key: key, of: body) else {
            return false
        }
        let text = value.dropFirst(prefix.count)
        let given = encoding == .base64 ? DigestValue(base64: text) : DigestValue(hexadecimal: text)
        return given == expected
    }

    private func text(of code: DigestValue) -> String {
        prefix + (encoding == .base64 ? code.base64 : code.hexadecimal)
    }
}

extension HMACSignature: CustomStringConvertible, CustomReflectable {
    /// The field and the digest, without the key.
    public var description: String { "HMACSignature(\(field), \(algorithm.rawValue), key: \(redaction))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

extension Interceptor where Self == HMACSignature {
    /// Signs bodies with a key that both sides have.
    ///
    /// - Parameters:
    ///   - key: The key's bytes.
    ///   - field: The field to set; "X-Signature" unless given.
    ///   - prefix: What stands before the signature; nothing unless given.
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - encoding: How the signature is written; hexadecimal unless given.
    public static func hmac(
        key: some Sequence<UInt8>, field: HeaderName = "X-Signature", prefix: String = "",
        algorithm: HMACAlgorithm = .sha256, encoding: HMACSignature.Encoding = .hexadecimal
    ) -> HMACSignature {
        HMACSignature(key: key, field: field, prefix: prefix, algorithm: algorithm, encoding: encoding)
    }
}
