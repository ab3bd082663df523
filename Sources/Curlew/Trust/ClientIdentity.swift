// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A client certificate with its private key and the certificates between it and a root.
///
/// An identity from files is read again when a file changes: new connections present the new certificate, and requests
/// do not reuse older connections. The key never leaves OpenSSL, and no description shows it.
///
/// ```swift
/// let identity = try ClientIdentity(certificateFile: "client.crt", keyFile: "client.key", passphrase: secret)
/// let session = Session(identities: .always(identity))
/// ```
public struct ClientIdentity: Sendable {
    private let fixed: X509Identity
    private let files: IdentityFiles?

    /// Creates an identity from certificates and key in PEM text.
    ///
    /// - Parameters:
    ///   - certificates: The certificate of the key and its intermediate certificates, in any order.
    ///   - key: The private key; may be the same text as `certificates`.
    ///   - passphrase: The passphrase of the key; nil if the key is not encrypted.
    /// - Throws: `TrustFailure.InvalidPolicy` when the certificates or the key cannot be read, or no certificate
    ///   belongs to the key.
    public init(certificates: String, key: String, passphrase: String? = nil) throws(TrustFailure.InvalidPolicy) {
        fixed = try ClientIdentity.read(Certificate.all(pem: certificates), key: Array(key.utf8), passphrase)
        files = nil
    }

    /// Creates an identity from the bytes of a PKCS #12 file (RFC 7292).
    ///
    /// - Parameters:
    ///   - pkcs12: The bytes of the file.
    ///   - passphrase: The passphrase of the file; empty by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the file cannot be read, or has no key with its certificate.
    public init(pkcs12: [UInt8], passphrase: String = "") throws(TrustFailure.InvalidPolicy) {
        fixed = try ClientIdentity.read(pkcs12: pkcs12, passphrase)
        files = nil
    }

    /// Creates an identity from PEM files, which are read now, on the calling thread, and again when they change.
    ///
    /// - Parameters:
    ///   - certificateFile: The path of the certificate of the key and its intermediate certificates.
    ///   - keyFile: The path of the private key; may be the same path.
    ///   - passphrase: The passphrase of the key; nil if the key is not encrypted.
    /// - Throws: `TrustFailure.InvalidPolicy` when the certificates or the key cannot be read, or no certificate
    ///   belongs to the key.
    public init(certificateFile: String, keyFile: String, passphrase: String? = nil) throws(TrustFailure.InvalidPolicy)
    {
        let files = IdentityFiles([certificateFile, keyFile]) { () throws(TrustFailure.InvalidPolicy) in
            let certificates = try Certificate.all(file: certificateFile)
            let key = try TrustFile.bytes(of: keyFile)
            return try TrustFailure.InvalidPolicy.about(file: keyFile) { () throws(TrustFailure.InvalidPolicy) in
                try ClientIdentity.read(certificates, key: key, passphrase)
            }
        }
        fixed = try files.first()
        self.files = files
    }

    /// Creates an identity from a PKCS #12 file (RFC 7292), which is read now, on the calling thread, and again when it
    /// changes.
    ///
    /// - Parameters:
    ///   - pkcs12File: The path of the file.
    ///   - passphrase: The passphrase of the file; empty by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when the file cannot be read, or has no key with its certificate.
    public init(pkcs12File: String, passphrase: String = "") throws(TrustFailure.InvalidPolicy) {
        let files = IdentityFiles([pkcs12File]) { () throws(TrustFailure.InvalidPolicy) in
            let bytes = try TrustFile.bytes(of: pkcs12File)
            return try TrustFailure.InvalidPolicy.about(file: pkcs12File) { () throws(TrustFailure.InvalidPolicy) in
                try ClientIdentity.read(pkcs12: bytes, passphrase)
            }
        }
        fixed = try files.first()
        self.files = files
    }

    /// The certificate of the key, as last read.
    public var certificate: Certificate { Certificate((files?.last ?? fixed).leaf) }
    /// The intermediate certificates, as last read.
    public var chain: [Certificate] { (files?.last ?? fixed).chain.map { Certificate($0) } }

    /// Returns the identity for a new connection, after reading the files again if they changed.
    ///
    /// - Parameter report: Called when the files changed and cannot be read; the identity then stays the same.
    func current(_ report: (TrustFailure.InvalidPolicy) -> Void) -> X509Identity { files?.current(report) ?? fixed }

    /// Refuses a passphrase with a NUL, which would end the C string early.
    private static func check(_ passphrase: String?) throws(TrustFailure.InvalidPolicy) {
        if passphrase?.utf8.contains(0) == true {
            throw TrustFailure.InvalidPolicy("The passphrase contains a NUL character.")
        }
    }

    private static func read(
        _ certificates: [Certificate], key: [UInt8], _ passphrase: String?
    ) throws(TrustFailure.InvalidPolicy) -> X509Identity {
        try check(passphrase)
        do throws(UnreadableTrust) {
            return try X509Identity(certificates: certificates.map(\.x509), keyPEM: key, passphrase: passphrase)
        } catch {
            throw TrustFailure.InvalidPolicy(
                "The client's private key cannot be used: \(error.reason).",
                hint:
                    "Give a PEM key that belongs to the certificate, with its passphrase if it is encrypted; keys and "
                    + "signatures of less than 112 bits of security are refused.")
        }
    }

    private static func read(pkcs12 bytes: [UInt8], _ passphrase: String) throws(TrustFailure.InvalidPolicy)
        -> X509Identity
    {
        try check(passphrase)
        do throws(UnreadableTrust) {
            return try X509Identity(pkcs12: bytes, passphrase: passphrase)
        } catch {
            throw TrustFailure.InvalidPolicy(
                "The PKCS #12 file cannot be used: \(error.reason).",
                hint: "Check the passphrase. Files by old software need conversion: openssl pkcs12 -legacy.")
        }
    }
}

extension ClientIdentity: Hashable, CustomStringConvertible, CustomReflectable {
    /// Whether both have equal certificates and the same file paths, or no files.
    public static func == (one: ClientIdentity, other: ClientIdentity) -> Bool {
        one.fixed == other.fixed && one.files?.paths == other.files?.paths
    }

    /// Hashes the certificate.
    public func hash(into hasher: inout Hasher) { hasher.combine(fixed) }

    /// The certificate, without the key.
    public var description: String { "client certificate \(certificate)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// The client identities that are presented to hosts.
///
/// ```swift
/// let session = Session(identities: try ClientIdentities(["**.bank.example": identity]))
/// ```
public struct ClientIdentities: Hashable, Sendable {
    private let table: HostTable<ClientIdentity>?
    private let everywhere: ClientIdentity?

    private init(_ table: HostTable<ClientIdentity>?, _ everywhere: ClientIdentity?) {
        self.table = table
        self.everywhere = everywhere
    }

    /// No identity for any host.
    public static let none = ClientIdentities(nil, nil)

    /// Presents the same identity to every server that requests a certificate, which reveals your identity to each.
    public static func always(_ identity: ClientIdentity) -> ClientIdentities { ClientIdentities(nil, identity) }

    /// Creates identities by host pattern; a host that no pattern matches gets no certificate.
    ///
    /// The best match counts, as in ``HostTrust``.
    /// - Throws: `TrustFailure.InvalidPolicy` when a pattern is invalid, or two mean the same hosts.
    public init(_ identities: [HostTrust.Pattern: ClientIdentity]) throws(TrustFailure.InvalidPolicy) {
        self.init(try HostTable(identities), nil)
    }

    var isEmpty: Bool { table == nil && everywhere == nil }

    /// The identity for a host, an A-label in lower case or an IP address; nil for no identity.
    public subscript(host: String) -> ClientIdentity? { table?[host] ?? everywhere }
}
