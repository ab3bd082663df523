// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The expected or computed digest of some bytes.
///
/// ```swift
/// let known: Checksum = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// let file = try await session.download("https://example.com/big.iso", to: .directory("."), expecting: known)
/// ```
///
/// Digests are written as hexadecimal digits or in base64. An invalid text makes a checksum that matches no bytes; a
/// download that expects such a checksum fails with `.invalidRequest` before it sends a request.
public struct Checksum: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The algorithm of a digest.
    public enum Algorithm: String, Sendable, Hashable, Codable, CaseIterable {
        /// SHA-256 (FIPS 180-4).
        case sha256
        /// SHA-512 (FIPS 180-4).
        case sha512
        /// SHA-1 (FIPS 180-4), which detects accidental damage but not attacks.
        case sha1
        /// MD5 (RFC 1321), which detects accidental damage but not attacks; unavailable on machines in FIPS mode.
        case md5

        /// The length of a digest in bytes.
        var count: Int {
            switch self {
            case .sha256: 32
            case .sha512: 64
            case .sha1: 20
            case .md5: 16
            }
        }
    }

    /// The algorithm of the digest.
    public let algorithm: Algorithm
    /// The digest; empty for an invalid text and for bytes of a wrong length.
    public let digest: [UInt8]

    /// Creates a checksum from its parts.
    ///
    /// - Parameters:
    ///   - algorithm: The algorithm of the digest.
    ///   - digest: The bytes of the digest; a wrong length makes a checksum that matches no bytes.
    public init(_ algorithm: Algorithm, digest: [UInt8]) {
        self.algorithm = algorithm
        self.digest = digest.count == algorithm.count ? digest : []
    }

    /// Creates a checksum from hexadecimal digits or base64.
    init(_ algorithm: Algorithm, text: String) {
        let text = text.trimmingSpace
        let isHexadecimal = text.utf8.count == algorithm.count * 2
        self.init(algorithm, digest: (isHexadecimal ? Self.hexadecimal(text) : Self.base64(text)) ?? [])
    }

    /// Parses "sha256:9f86…", or "sha256-n4bQ…" as in the Subresource Integrity recommendation of the W3C; nil for
    /// another algorithm and for an invalid digest.
    public init?(_ text: String) {
        guard let mark = text.firstIndex(where: { ":-=".contains($0) }),
            let algorithm = Algorithm(rawValue: text[..<mark].lowercased())
        else { return nil }
        self.init(algorithm, text: String(text[text.index(after: mark)...]))
        if digest.isEmpty { return nil }
    }

    /// Parses a digest field (RFC 9530) and takes its SHA-256, else its SHA-512; nil when neither is well-formed.
    init?(digestField: String) {
        for (name, algorithm) in [("sha-256", Algorithm.sha256), ("sha-512", .sha512)] {
            for member in digestField.split(separator: ",") {
                let member = String(member).trimmingSpace
                guard member.hasPrefix("\(name)=:") else { continue }
                let value = member.dropFirst(name.count + 2)
                guard let end = value.firstIndex(of: ":") else { continue }
                self.init(algorithm, digest: Self.base64(String(value[..<end])) ?? [])
                if !digest.isEmpty { return }
            }
        }
        return nil
    }

    /// Creates a SHA-256 checksum from hexadecimal digits or base64.
    public static func sha256(_ text: String) -> Checksum { Checksum(.sha256, text: text) }
    /// Creates a SHA-512 checksum from hexadecimal digits or base64.
    public static func sha512(_ text: String) -> Checksum { Checksum(.sha512, text: text) }
    /// Creates a SHA-1 checksum from hexadecimal digits or base64.
    public static func sha1(_ text: String) -> Checksum { Checksum(.sha1, text: text) }
    /// Creates an MD5 checksum from hexadecimal digits or base64.
    public static func md5(_ text: String) -> Checksum { Checksum(.md5, text: text) }

    private static func base64(_ text: String) -> [UInt8]? { Data(base64Encoded: text).map { [UInt8]($0) } }

    private static func hexadecimal(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard !digits.contains(nil) else { return nil }
        let values = digits.compactMap(\.self)
        return stride(from: 0, to: values.count - 1, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) }
    }

    /// The algorithm and the digest in hexadecimal digits: "sha256:9f86…".
    public var description: String {
        digest.isEmpty ? "\(algorithm.rawValue), no digest" : "\(algorithm.rawValue):\(digest.hexadecimal)"
    }
}

extension Checksum.Algorithm {
    /// OpenSSL's name of the algorithm.
    var openSSL: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha512: MessageDigest.Algorithm(name: "SHA2-512")
        case .sha1: MessageDigest.Algorithm(name: "SHA1")
        case .md5: .md5
        }
    }
}
