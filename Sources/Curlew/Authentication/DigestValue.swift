// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// A digest for signatures.
public enum HMACAlgorithm: String, Sendable, Hashable, CaseIterable, Codable {
    /// 256 bits (FIPS 180-4), what nearly everybody uses.
    case sha256
    /// 384 bits (FIPS 180-4).
    case sha384
    /// 512 bits (FIPS 180-4).
    case sha512
    /// 160 bits (FIPS 180-4), for old services; a digest of it alone is no proof of anything any more.
    case sha1

    private var algorithm: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha384: .sha384
        case .sha512: .sha512
        case .sha1: .sha1
        }
    }

    /// The digest of no bytes so far.
    func digest() throws(NetworkError) -> MessageDigest {
        guard let digest = MessageDigest(algorithm) else { throw unsupported }
        return digest
    }

    /// The keyed digest of no bytes so far.
    func code(key: [UInt8]) throws(NetworkError) -> HMAC {
        guard let code = HMAC(algorithm, key: key) else { throw unsupported }
        return code
    }

    func digest(of bytes: some Sequence<UInt8>) throws(NetworkError) -> [UInt8] {
        let digest = try digest()
        digest.update(bytes)
        return digest.finish()
    }

    func code(key: [UInt8], of bytes: some Sequence<UInt8>) throws(NetworkError) -> [UInt8] {
        let code = try code(key: key)
        code.update(bytes)
        return code.finish()
    }

    private var unsupported: NetworkError {
        NetworkError(
            .unsupported, phase: .preparing, "OpenSSL computes no \(rawValue) on this machine.",
            hint: "Its configuration (openssl.cnf) switches it off, or it runs in a FIPS mode without it.")
    }
}

/// A digest or keyed digest, compared in a time that tells nothing of where two differ.
///
/// ```swift
/// let expected = try DigestValue.hmac(key: secret.utf8, of: body)
/// let isGenuine = DigestValue(hexadecimal: received) == expected
/// ```
public struct DigestValue: Sendable, Equatable {
    /// The bytes.
    public let bytes: [UInt8]

    /// Takes bytes as they are.
    public init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Reads hexadecimal digits of either case; nil for anything else.
    ///
    /// - Parameter text: Two digits for each byte.
    public init?(hexadecimal text: some StringProtocol) {
        let digits = text.utf8.map {
            ByteSet.hexDigits.contains($0) ? UInt8(String(Unicode.Scalar($0)), radix: 16) : nil
        }
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            bytes.append(high << 4 | low)
        }
        self.bytes = bytes
    }

    /// Reads Base64 (RFC 4648 §4), with its padding; nil for anything else.
    ///
    /// - Parameter text: The Base64 text.
    public init?(base64 text: some StringProtocol) {
        guard let data = Data(base64Encoded: String(text)) else { return nil }
        bytes = Array(data)
    }

    /// Lower-case hexadecimal digits.
    public var hexadecimal: String { bytes.hexadecimal }

    /// Base64 (RFC 4648 §4), with its padding.
    public var base64: String { Data(bytes).base64EncodedString() }

    /// The keyed digest of a message (RFC 2104).
    ///
    /// - Parameters:
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - key: The key, of any length.
    ///   - message: The bytes to sign.
    /// - Throws: `NetworkError` of kind `unsupported` where OpenSSL was told not to compute the digest.
    public static func hmac(
        _ algorithm: HMACAlgorithm = .sha256, key: some Sequence<UInt8>, of message: some Sequence<UInt8>
    ) throws(NetworkError) -> DigestValue {
        DigestValue(bytes: try algorithm.code(key: Array(key), of: message))
    }

    /// Whether the bytes are the same; it takes as long wherever they differ.
    public static func == (one: DigestValue, other: DigestValue) -> Bool { HMAC.isEqual(one.bytes, other.bytes) }
}
