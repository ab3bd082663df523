// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The keys for signing requests to Amazon Web Services and compatible services.
///
/// No description shows the secret key or the token.
///
/// ```swift
/// let credentials = AWSCredentials(accessKeyID: id, secretAccessKey: secret)
/// ```
public struct AWSCredentials: Sendable, Hashable {
    /// The identifier of the key, which is not secret.
    public var accessKeyID: String
    /// The secret key.
    public var secretAccessKey: String
    /// The token of temporary credentials; nil for permanent ones.
    public var sessionToken: String?

    /// Creates credentials from the given values, unchanged.
    public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
    }
}

extension AWSCredentials: CustomStringConvertible, CustomReflectable {
    /// The access key and "<redacted>".
    public var description: String { "AWSCredentials(\(accessKeyID.escapingControls), \(redaction))" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
