// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

extension Certificate {
    /// The SHA-256 hash of a public key (SubjectPublicKeyInfo), written as a pin: `sha256/` and 44 characters of
    /// Base64.
    ///
    /// The hash stays the same when a certificate is renewed with the same key. `Documentation/Trust.md` has a command
    /// that computes it; the error of a refused server lists the hashes of the server's keys.
    public struct PublicKeyHash: Hashable, Sendable {
        /// The 32 bytes of the digest.
        public let digest: [UInt8]

        /// Reads a pin.
        ///
        /// - Parameter pin: `sha256/` and the digest in Base64 (RFC 7469 §2.4).
        /// - Throws: `TrustFailure.InvalidPolicy` when the text has another form.
        public init(_ pin: String) throws(TrustFailure.InvalidPolicy) {
            let prefix = "sha256/"
            guard pin.hasPrefix(prefix), let digest = Data(base64Encoded: String(pin.dropFirst(prefix.count))),
                digest.count == 32
            else {
                throw TrustFailure.InvalidPolicy(
                    "“\(pin.escapingControls)” is not a pin.",
                    hint: "A pin is “sha256/” and the SHA-256 digest of a public key in Base64, 44 characters.")
            }
            self.digest = Array(digest)
        }

        /// Creates a hash from a digest.
        ///
        /// - Throws: `TrustFailure.InvalidPolicy` when the digest does not have 32 bytes.
        public init(sha256 digest: [UInt8]) throws(TrustFailure.InvalidPolicy) {
            guard digest.count == 32 else {
                throw TrustFailure.InvalidPolicy("A SHA-256 digest has 32 bytes, not \(digest.count).")
            }
            self.digest = digest
        }

        /// Creates the hash of a certificate's public key.
        public init(of certificate: Certificate) { digest = certificate.x509.publicKeyHash }
    }
}

extension Certificate.PublicKeyHash: CustomStringConvertible, Codable {
    /// The pin, ready to paste.
    public var description: String { "sha256/" + Data(digest).base64EncodedString() }

    /// Reads a pin.
    ///
    /// - Throws: `DecodingError.dataCorrupted` when the text is not a pin.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let pin = try container.decode(String.self)
        do throws(TrustFailure.InvalidPolicy) {
            try self.init(pin)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }

    /// Writes the pin.
    ///
    /// - Throws: The error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
