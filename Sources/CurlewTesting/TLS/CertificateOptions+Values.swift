// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension CertificateOptions {
    /// A subject alternative name (RFC 5280 §4.2.1.6), verbatim but for addresses: wildcards, A-labels and even NUL
    /// bytes go into the certificate as they stand.
    public enum AlternativeName: Sendable, Hashable {
        /// A DNS name.
        case dns(String)
        /// An IP address, as `127.0.0.1` or `::1`; among name constraints with a mask, `10.0.0.0/255.0.0.0`.
        case ip(String)
        /// A mail address.
        case email(String)
        /// A URI.
        case uri(String)
    }

    /// Whether a certificate says to be an authority (RFC 5280 §4.2.1.9).
    public enum BasicConstraints: Sendable, Hashable {
        /// Authorities say so, leaves say that they are none; critical.
        case byRole
        /// It says to be one, whatever it is; critical.
        case authority
        /// It says to be none, whatever it is; critical.
        case notAuthority
        /// It does not say.
        case absent
    }

    /// What a key may be used for (RFC 5280 §4.2.1.3).
    public enum KeyUsage: String, Sendable, Hashable {
        /// Signatures other than those on certificates and lists.
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

    /// What a certificate may be used for (RFC 5280 §4.2.1.12).
    public struct ExtendedKeyUsage: Sendable, Hashable {
        /// An object identifier in dots, or the name that OpenSSL has for it.
        public let identifier: String

        /// A usage by its object identifier.
        /// - Parameter identifier: The object identifier in dots, or the name that OpenSSL has for it.
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

    /// An extension with bytes that nobody looks at before they are in the certificate.
    public struct Extension: Sendable, Hashable {
        /// The object identifier, in dots.
        public let identifier: String
        /// Whether clients that do not know it must refuse the certificate.
        public let isCritical: Bool
        /// The value, DER.
        public let value: [UInt8]

        /// An extension.
        /// - Parameters:
        ///   - identifier: The object identifier, in dots.
        ///   - isCritical: Whether clients that do not know it must refuse the certificate; false by default.
        ///   - value: The value, DER; NULL by default.
        public init(_ identifier: String, isCritical: Bool = false, value: [UInt8] = [0x05, 0x00]) {
            self.identifier = identifier
            self.isCritical = isCritical
            self.value = value
        }

        /// A critical extension that nobody knows.
        public static let unknownCritical = Extension("1.3.6.1.4.1.32473.1", isCritical: true)
        /// What an OCSP signer's certificate has when its own revocation need not be looked at (RFC 6960 §4.2.2.2.1).
        public static let ocspNoCheck = Extension("1.3.6.1.5.5.7.48.1.5")
    }
}
