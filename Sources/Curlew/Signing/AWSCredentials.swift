// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The keys that requests to Amazon Web Services, and what speaks like them, are signed with.
///
/// No description shows the secret key and the token.
///
/// ```swift
/// let credentials = AWSCredentials(accessKey: id, secretKey: secret)
/// ```
public struct AWSCredentials: Sendable, Hashable {
    /// Which key it is; no secret.
    public var accessKey: String
    /// The key itself.
    public var secretKey: String
    /// What temporary credentials come with; nil for those that last.
    public var sessionToken: String?

    /// Takes all three unchanged.
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
