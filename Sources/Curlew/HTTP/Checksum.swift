// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The digest that bytes should have, or have.
///
/// ```swift
/// let known: Checksum = .sha256("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
/// let file = try await session.download("https://example.com/big.iso", to: .directory("."), expecting: known)
/// ```
///
/// Digests are written as hexadecimal digits, or in base64. A text that is no digest makes a checksum which no bytes have;
/// a download that expects it fails with `.invalidRequest` before anything is sent.
public struct Checksum: Sendable, Hashable, Codable, CustomStringConvertible {
    /// How the digest is computed.
    public enum Algorithm: String, Sendable, Hashable, Codable, CaseIterable {
        /// SHA-256 (FIPS 180-4).
        case sha256
        /// SHA-512 (FIPS 180-4).
        case sha512
        /// SHA-1 (FIPS 180-4): finds accidents, no attacks.
        case sha1
        /// MD5 (RFC 1321): finds accidents, no attacks; not there on machines in FIPS mode.
        case md5

        /// How many bytes a digest has.
        var count: Int {
            switch self {
            case .sha256: 32
            case .sha512: 64
            case .sha1: 20
            case .md5: 16
            }
        }
    }

    /// How the digest is computed.
    public let algorithm: Algorithm
    /// The digest; empty for a text that is none.
    public let digest: [UInt8]

    /// A checksum of its parts.
    ///
    /// - Parameters:
    ///   - algorithm: How the digest is computed.
    ///   - digest: Its bytes; ones of another length make a checksum that no bytes have.
    public init(_ algorithm: Algorithm, digest: [UInt8]) {
        self.algorithm = algorithm
        self.digest = digest.count == algorithm.count ? digest : []
    }

    /// A checksum of a text: hexadecimal digits, or base64.
    init(_ algorithm: Algorithm, text: String) {
        let text = text.trimmingSpace
        let isHexadecimal = text.utf8.count == algorithm.count * 2
        self.init(algorithm, digest: (isHexadecimal ? Self.hexadecimal(text) : Self.base64(text)) ?? [])
    }

    /// Reads "sha256:9f86…", or "sha256-n4bQ…" as in the Subresource Integrity recommendation of the W3C; nil for another
    /// algorithm and for what is no digest.
    public init?(_ text: String) {
        guard let mark = text.firstIndex(where: { ":-=".contains($0) }),
            let algorithm = Algorithm(rawValue: text[..<mark].lowercased())
        else { return nil }
        self.init(algorithm, text: String(text[text.index(after: mark)...]))
        if digest.isEmpty { return nil }
    }

    /// Reads a digest field (RFC 9530): the first of SHA-256 and SHA-512 in it; nil without a well-formed one.
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

    /// SHA-256, as hexadecimal digits or in base64.
    public static func sha256(_ text: String) -> Checksum { Checksum(.sha256, text: text) }
    /// SHA-512, as hexadecimal digits or in base64.
    public static func sha512(_ text: String) -> Checksum { Checksum(.sha512, text: text) }
    /// SHA-1, as hexadecimal digits or in base64.
    public static func sha1(_ text: String) -> Checksum { Checksum(.sha1, text: text) }
    /// MD5, as hexadecimal digits or in base64.
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
    /// The name that OpenSSL knows it by.
    var openSSL: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha512: MessageDigest.Algorithm(name: "SHA2-512")
        case .sha1: MessageDigest.Algorithm(name: "SHA1")
        case .md5: .md5
        }
    }
}
