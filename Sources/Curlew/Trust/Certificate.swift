// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
public import FoundationEssentials

/// An X.509 certificate (RFC 5280), parsed by OpenSSL.
///
/// Two certificates are equal if their bytes are equal. Properties are parsed each time they are read.
///
/// ```swift
/// for certificate in try Certificate.all(file: "/etc/ssl/certs/ca-certificates.crt") {
///     print(certificate.subject, certificate.notAfter, certificate.publicKeyHash)
/// }
/// ```
public struct Certificate: Hashable, Sendable {
    let x509: X509Certificate

    init(_ x509: X509Certificate) { self.x509 = x509 }

    /// Reads one certificate in DER.
    ///
    /// - Throws: `TrustFailure.InvalidPolicy` when the bytes are anything else.
    public init(der: [UInt8]) throws(TrustFailure.InvalidPolicy) {
        guard der.first == 0x30 else { throw TrustFailure.InvalidPolicy("The bytes are not a certificate in DER.") }
        self = try Certificate.all(in: der)[0]
    }

    /// Reads the one certificate of a PEM text (RFC 7468).
    ///
    /// - Throws: `TrustFailure.InvalidPolicy` when the text has no certificate, several certificates, or an unreadable
    ///   one.
    public init(pem: String) throws(TrustFailure.InvalidPolicy) {
        let all = try Certificate.all(pem: pem)
        guard all.count == 1 else {
            throw TrustFailure.InvalidPolicy(
                "The PEM text holds \(all.count) certificates.", hint: "Use Certificate.all(pem:).")
        }
        self = all[0]
    }

    /// The certificate in DER.
    public var der: [UInt8] { x509.der }

    /// The certificate in PEM (RFC 7468).
    public var pem: String {
        let lines = Data(x509.der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN CERTIFICATE-----\n\(lines)\n-----END CERTIFICATE-----\n"
    }

    /// The subject, in the notation of RFC 4514.
    public var subject: String { x509.subject }
    /// The issuer, in the notation of RFC 4514.
    public var issuer: String { x509.issuer }
    /// The serial number, in hexadecimal digits.
    public var serialNumber: String { x509.serialNumber }
    /// The start of the validity period; `distantFuture` when it cannot be read.
    public var notBefore: Date { Certificate.date(x509.validity.begins, else: .distantFuture) }
    /// The end of the validity period; `distantPast` when it cannot be read.
    public var notAfter: Date { Certificate.date(x509.validity.ends, else: .distantPast) }
    /// The type of the public key, such as "RSA 2048", "EC P-256" or "ED25519".
    public var keyType: String { x509.keyType }
    /// The algorithm of the signature, such as "ecdsa-with-SHA256".
    public var signatureAlgorithm: String { x509.signatureAlgorithm }
    /// The hash of the public key, which pins are compared with.
    public var publicKeyHash: Certificate.PublicKeyHash { Certificate.PublicKeyHash(of: self) }
    /// SHA-256 of the certificate, in hexadecimal digits.
    public var fingerprint: String { Certificate.hexadecimal(sha256(x509.der)) }
    /// Whether the certificate may sign other certificates.
    public var isAuthority: Bool { x509.isAuthority }
    /// Whether subject and issuer are the same.
    public var isSelfIssued: Bool { x509.isSelfIssued }

    /// A subject alternative name (RFC 5280 §4.2.1.6).
    public enum Name: Hashable, Sendable {
        /// A DNS name as it is in the certificate, possibly with a wildcard.
        case dns(String)
        /// An IP address; empty when it has neither four nor sixteen bytes.
        case address(String)
        /// An email address.
        case email(String)
        /// A URI.
        case uri(String)
        /// A name of another kind.
        case other
    }

    /// The subject alternative names.
    public var names: [Name] { names(upTo: .max) }

    func names(upTo most: Int) -> [Name] {
        x509.names(upTo: most).map { name in
            switch name {
            case .dns(let bytes): .dns(String(decoding: bytes, as: UTF8.self))
            case .address(let bytes): .address(HostName.address(bytes) ?? "")
            case .email(let bytes): .email(String(decoding: bytes, as: UTF8.self))
            case .uri(let bytes): .uri(String(decoding: bytes, as: UTF8.self))
            case .other: .other
            }
        }
    }

    /// Returns whether the certificate names a host (RFC 9525 §6).
    ///
    /// Only DNS names and IP addresses among the subject alternative names count, never the common name. A wildcard
    /// must be the whole left-most label.
    /// - Parameter host: An A-label or an IP address; a trailing dot is ignored.
    public func isNamed(_ host: String) -> Bool { x509.matches(host) }

    /// Returns whether the certificate is valid at a time.
    public func isValid(at time: Date) -> Bool { notBefore <= time && time <= notAfter }

    private static func date(_ seconds: Int64, else other: Date) -> Date {
        seconds == .max || seconds == .min ? other : Date(timeIntervalSince1970: Double(seconds))
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
    }
}

extension Certificate: CustomStringConvertible, CustomReflectable {
    /// The subject, issuer and validity in one line.
    public var description: String {
        "\(subject.isEmpty ? "no subject" : subject), issued by \(issuer.isEmpty ? "an unnamed issuer" : issuer), "
            + "valid from \(notBefore.formatted(.iso8601)) to \(notAfter.formatted(.iso8601))"
    }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}
