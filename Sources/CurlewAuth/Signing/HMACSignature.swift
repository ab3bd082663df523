// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// Signs bodies with a shared key (RFC 2104), as webhooks do, and verifies signatures for a receiver.
///
/// A body that can be read only once is refused; a request without a body has the signature of zero bytes. The
/// signature covers neither the rest of the request nor a time, so an attacker can record a request and send it again.
/// For services that also sign the time, use ``BodySignature``.
///
/// Descriptions, errors and logs hide the signature if the field's name contains "signature".
///
/// ```swift
/// let hooks = HMACSignature(key: secret, field: "X-Hub-Signature-256", prefix: "sha256=")
/// let api = Client("https://example.com/hooks").with { $0.auth = hooks }
/// let isGenuine = hooks.isValid(receivedField, of: receivedBody)
/// ```
public struct HMACSignature: Authenticator {
    /// The encoding of the signature.
    public enum Encoding: String, Sendable, Hashable, CaseIterable, Codable {
        /// Lower-case digits; verification accepts either case.
        case hexadecimal
        /// Base64 (RFC 4648 §4) with padding.
        case base64
    }

    /// The field that contains the signature.
    public let field: HeaderName
    /// The text before the signature in the field.
    public let prefix: String
    /// The digest.
    public let algorithm: HMACAlgorithm
    /// The encoding of the signature.
    public let encoding: Encoding
    private let key: [UInt8]

    /// Creates an authenticator that signs with a key.
    ///
    /// - Parameters:
    ///   - key: The key's bytes; no description shows them.
    ///   - field: The field to set; "X-Signature" unless given.
    ///   - prefix: The text before the signature; empty unless given.
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - encoding: The encoding of the signature; hexadecimal unless given.
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

    /// Signs the body and sends the request.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that can be read only once, `.bodyFailed` when its source
    ///   fails, and the errors of transfers.
    public func authenticate(
        _ request: Request, context: Interception.Context, next: Interception.Next
    ) async throws -> IncomingResponse {
        var signed = request.withoutCompression
        signed.fields[field] = text(of: try await SignableBody(request.body).hmac(algorithm, key: key))
        return try await next(signed)
    }

    /// Returns the value of the field for a body.
    ///
    /// - Parameter body: All bytes of the body.
    /// - Throws: `NetworkError` of kind `unsupported` if the configuration of OpenSSL excludes the digest.
    public func value(of body: some Sequence<UInt8>) throws(NetworkError) -> String {
        text(of: try .hmac(algorithm, key: key, of: body))
    }

    /// Returns whether a field's value is the signature of a body; the comparison takes constant time.
    ///
    /// The result is also false for a value without the prefix, and if the configuration of OpenSSL excludes the
    /// digest.
    /// - Parameters:
    ///   - value: The value of the field.
    ///   - body: All received bytes, before any decoding.
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
    /// Signs bodies with a shared key.
    ///
    /// - Parameters:
    ///   - key: The key's bytes.
    ///   - field: The field to set; "X-Signature" unless given.
    ///   - prefix: The text before the signature; empty unless given.
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - encoding: The encoding of the signature; hexadecimal unless given.
    public static func hmac(
        key: some Sequence<UInt8>, field: HeaderName = "X-Signature", prefix: String = "",
        algorithm: HMACAlgorithm = .sha256, encoding: HMACSignature.Encoding = .hexadecimal
    ) -> HMACSignature {
        HMACSignature(key: key, field: field, prefix: prefix, algorithm: algorithm, encoding: encoding)
    }
}
