// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension CertificateOptions {
    /// A subject alternative name (RFC 5280 §4.2.1.6).
    ///
    /// All names except IP addresses go into the certificate verbatim, including wildcards, A-labels and NUL bytes.
    public enum AlternativeName: Sendable, Hashable {
        /// A DNS name.
        case dns(String)
        /// An IP address, such as `127.0.0.1` or `::1`; in name constraints with a mask, such as `10.0.0.0/255.0.0.0`.
        case ip(String)
        /// A mail address.
        case email(String)
        /// A URI.
        case uri(String)
    }

    /// The basic constraints, which state whether a certificate is an authority (RFC 5280 §4.2.1.9).
    public enum BasicConstraints: Sendable, Hashable {
        /// The role decides: authorities state that they are authorities, leaves that they are not; critical.
        case byRole
        /// The certificate states that it is an authority, regardless of its role; critical.
        case authority
        /// The certificate states that it is not an authority, regardless of its role; critical.
        case notAuthority
        /// The certificate omits the extension.
        case absent
    }

    /// A permitted use of a key (RFC 5280 §4.2.1.3).
    public enum KeyUsage: String, Sendable, Hashable {
        /// Signatures, except on certificates and revocation lists.
        case digitalSignature
        /// Signatures that the signer cannot deny.
        case nonRepudiation
        /// Encrypting keys: TLS 1.2 with the RSA key exchange.
        case keyEncipherment
        /// Encrypting data.
        case dataEncipherment
        /// Agreeing on keys.
        case keyAgreement
        /// Signing certificates.
        case keyCertSign
        /// Signing revocation lists.
        case cRLSign
    }

    /// A permitted use of a certificate (RFC 5280 §4.2.1.12).
    public struct ExtendedKeyUsage: Sendable, Hashable {
        /// The object identifier in dotted form, or OpenSSL's name for it.
        public let identifier: String

        /// Creates a usage from its object identifier.
        /// - Parameter identifier: The object identifier in dotted form, or OpenSSL's name for it.
        public init(_ identifier: String) {
            self.identifier = identifier
        }

        /// TLS servers.
        public static let serverAuth = ExtendedKeyUsage("serverAuth")
        /// TLS clients.
        public static let clientAuth = ExtendedKeyUsage("clientAuth")
        /// Signed programs.
        public static let codeSigning = ExtendedKeyUsage("codeSigning")
        /// Mail.
        public static let emailProtection = ExtendedKeyUsage("emailProtection")
        /// OCSP responses on behalf of the issuer (RFC 6960 §4.2.2.2).
        public static let ocspSigning = ExtendedKeyUsage("OCSPSigning")
        /// Anything.
        public static let any = ExtendedKeyUsage("anyExtendedKeyUsage")
    }

    /// An extension whose bytes go into the certificate unchecked.
    public struct Extension: Sendable, Hashable {
        /// The object identifier, in dotted form.
        public let identifier: String
        /// Whether clients that do not know it must refuse the certificate.
        public let isCritical: Bool
        /// The value, DER.
        public let value: [UInt8]

        /// Creates an extension.
        /// - Parameters:
        ///   - identifier: The object identifier, in dotted form.
        ///   - isCritical: Whether clients that do not know it must refuse the certificate; false by default.
        ///   - value: The value, DER; NULL by default.
        public init(_ identifier: String, isCritical: Bool = false, value: [UInt8] = [0x05, 0x00]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }

        /// A critical extension that no client knows.
        public static let unknownCritical = Extension("1.3.6.1.4.1.32473.1", isCritical: true)
        /// The extension that exempts an OCSP signer's certificate from revocation checks (RFC 6960 §4.2.2.2.1).
        public static let ocspNoCheck = Extension("1.3.6.1.5.5.7.48.1.5")
    }
}
