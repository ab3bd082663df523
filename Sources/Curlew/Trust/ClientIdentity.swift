// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Who we are to servers that demand a certificate: a private key, its certificate and those between it and a root.
///
/// One that is read from files follows them: when a file changes, new connections show the new certificate, and no old
/// connection is used any more. The key never leaves OpenSSL, and no description shows it.
///
/// ```swift
/// let identity = try ClientIdentity(certificateFile: "client.crt", keyFile: "client.key", passphrase: secret)
/// let session = Session(identities: .always(identity))
/// ```
public struct ClientIdentity: Sendable {
    private let fixed: X509Identity
    private let files: IdentityFiles?

    /// Takes certificates and key as PEM texts.
    ///
    /// - Parameters:
    ///   - certificates: The certificate of the key and those that signed it, in any order.
    ///   - key: The private key; perhaps the same text.
    ///   - passphrase: What the key is encrypted with; nil for a key that is not.
    /// - Throws: `InvalidTrust` when something cannot be read, or the key belongs to none of the certificates.
    public init(certificates: String, key: String, passphrase: String? = nil) throws(InvalidTrust) {
        fixed = try ClientIdentity.read(Certificate.all(pem: certificates), key: Array(key.utf8), passphrase)
        files = nil
    }

    /// Takes a PKCS #12 file (RFC 7292) as bytes.
    ///
    /// - Parameters:
    ///   - pkcs12: The bytes.
    ///   - passphrase: What it is encrypted with; empty by default.
    /// - Throws: `InvalidTrust` when it cannot be read, or holds no key with its certificate.
    public init(pkcs12: [UInt8], passphrase: String = "") throws(InvalidTrust) {
        fixed = try ClientIdentity.read(pkcs12: pkcs12, passphrase)
        files = nil
    }

    /// Reads certificates and key from PEM files, now and whenever they change, on the calling thread.
    ///
    /// - Parameters:
    ///   - certificateFile: The path of the certificate of the key and those that signed it.
    ///   - keyFile: The path of the private key; perhaps the same.
    ///   - passphrase: What the key is encrypted with; nil for a key that is not.
    /// - Throws: `InvalidTrust` when something cannot be read, or the key belongs to none of the certificates.
    public init(certificateFile: String, keyFile: String, passphrase: String? = nil) throws(InvalidTrust) {
        let files = IdentityFiles([certificateFile, keyFile]) { () throws(InvalidTrust) in
            let certificates = try Certificate.all(file: certificateFile)
            let key = try TrustFile.bytes(of: keyFile)
            return try InvalidTrust.about(file: keyFile) { () throws(InvalidTrust) in
                try ClientIdentity.read(certificates, key: key, passphrase)
            }
        }
        fixed = try files.first()
        self.files = files
    }

    /// Reads a PKCS #12 file (RFC 7292), now and whenever it changes, on the calling thread.
    ///
    /// - Parameters:
    ///   - pkcs12File: Its path.
    ///   - passphrase: What it is encrypted with; empty by default.
    /// - Throws: `InvalidTrust` when it cannot be read, or holds no key with its certificate.
    public init(pkcs12File: String, passphrase: String = "") throws(InvalidTrust) {
        let files = IdentityFiles([pkcs12File]) { () throws(InvalidTrust) in
            let bytes = try TrustFile.bytes(of: pkcs12File)
            return try InvalidTrust.about(file: pkcs12File) { () throws(InvalidTrust) in
                try ClientIdentity.read(pkcs12: bytes, passphrase)
            }
        }
        fixed = try files.first()
        self.files = files
    }

    /// The certificate of the key, as last read.
    public var certificate: Certificate { Certificate((files?.last ?? fixed).leaf) }
    /// The other certificates, as last read.
    public var chain: [Certificate] { (files?.last ?? fixed).chain.map { Certificate($0) } }

    /// What is to be shown now, after a look at the files.
    ///
    /// - Parameter report: Told when they have changed and cannot be read; the identity stays as it was.
    func current(_ report: (InvalidTrust) -> Void) -> X509Identity { files?.current(report) ?? fixed }

    /// C would cut it there.
    private static func check(_ passphrase: String?) throws(InvalidTrust) {
        if passphrase?.utf8.contains(0) == true { throw InvalidTrust("The passphrase holds a NUL character.") }
    }

    private static func read(
        _ certificates: [Certificate], key: [UInt8], _ passphrase: String?
    ) throws(InvalidTrust) -> X509Identity {
        try check(passphrase)
        do throws(UnreadableTrust) {
            return try X509Identity(certificates: certificates.map(\.x509), keyPEM: key, passphrase: passphrase)
        } catch {
            throw InvalidTrust(
                "The client's private key cannot be used: \(error.reason).",
                hint:
                    "Give a PEM key that belongs to the certificate, with its passphrase if it is encrypted; keys and "
                    + "signatures of less than 112 bits of security are refused.")
        }
    }

    private static func read(pkcs12 bytes: [UInt8], _ passphrase: String) throws(InvalidTrust) -> X509Identity {
        try check(passphrase)
        do throws(UnreadableTrust) {
            return try X509Identity(pkcs12: bytes, passphrase: passphrase)
        } catch {
            throw InvalidTrust(
                "The PKCS #12 file cannot be used: \(error.reason).",
                hint: "Check the passphrase. Files by old software need conversion: openssl pkcs12 -legacy.")
        }
    }
}

extension ClientIdentity: Hashable, CustomStringConvertible, CustomReflectable {
    /// Whether both show the same certificates, from the same files if from any.
    public static func == (one: ClientIdentity, other: ClientIdentity) -> Bool {
        one.fixed == other.fixed && one.files?.paths == other.files?.paths
    }

    /// Hashes the certificate.
    public func hash(into hasher: inout Hasher) { hasher.combine(fixed) }

    /// The certificate, never the key.
    public var description: String { "client certificate \(certificate)" }

    /// The description alone.
    public var customMirror: Mirror { Mirror(self, children: ["description": description], displayStyle: .struct) }
}

/// Which identity is shown to which host.
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

    /// None to anybody.
    public static let none = ClientIdentities(nil, nil)

    /// The same to everybody who demands one; it tells them who you are.
    public static func always(_ identity: ClientIdentity) -> ClientIdentities { ClientIdentities(nil, identity) }

    /// One for each host that a pattern matches, none to others; the best match counts, as in ``HostTrust``.
    ///
    /// - Throws: `InvalidTrust` when a pattern is none.
    public init(_ identities: [HostPattern: ClientIdentity]) throws(InvalidTrust) {
        self.init(try HostTable(identities), nil)
    }

    var isEmpty: Bool { table == nil && everywhere == nil }

    /// Who we are to a host, an A-label in lower case or an IP address; nil for nobody.
    public subscript(host: String) -> ClientIdentity? { table?[host] ?? everywhere }
}
