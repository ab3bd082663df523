// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The keys for signing requests to Amazon Web Services and compatible services.
///
/// No description shows the secret key or the token.
///
/// ```swift
/// let credentials = AWSCredentials(accessKey: id, secretKey: secret)
/// ```
public struct AWSCredentials: Sendable, Hashable {
    /// The identifier of the key, which is not secret.
    public var accessKey: String
    /// The secret key.
    public var secretKey: String
    /// The token of temporary credentials; nil for permanent ones.
    public var sessionToken: String?

    /// Creates credentials from the given values, unchanged.
    public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }
}

extension AWSCredentials: CustomStringConvertible, CustomReflectable {
    /// The access key and "<redacted>".
    public var description: String { "AWSCredentials(\(accessKey.escapingControls), \(redaction))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
