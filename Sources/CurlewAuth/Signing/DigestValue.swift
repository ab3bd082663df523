// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew
internal import FoundationEssentials

/// A digest for signatures.
public enum HMACAlgorithm: String, Sendable, Hashable, CaseIterable, Codable {
    /// 256 bits (FIPS 180-4), the most common choice.
    case sha256
    /// 384 bits (FIPS 180-4).
    case sha384
    /// 512 bits (FIPS 180-4).
    case sha512
    /// 160 bits (FIPS 180-4), for old services; a plain SHA-1 digest is no longer secure.
    case sha1

    private var algorithm: MessageDigest.Algorithm {
        switch self {
        case .sha256: .sha256
        case .sha384: .sha384
        case .sha512: .sha512
        case .sha1: .sha1
        }
    }

    /// Creates a digest without any bytes so far.
    func digest() throws(NetworkError) -> MessageDigest {
        guard let digest = MessageDigest(algorithm) else { throw unsupported }
        return digest
    }

    /// Creates a keyed digest without any bytes so far.
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
            .unsupported, phase: .preparing, "OpenSSL does not support \(rawValue) on this machine.",
            hint: "Check the OpenSSL configuration (openssl.cnf) and whether a FIPS mode excludes the digest.")
    }
}

/// A digest or keyed digest that is compared in constant time.
///
/// ```swift
/// let expected = try DigestValue.hmac(key: secret.utf8, of: body)
/// let isGenuine = DigestValue(hexadecimal: received) == expected
/// ```
public struct DigestValue: Sendable, Equatable {
    /// The bytes.
    public let bytes: [UInt8]

    /// Creates a digest from its bytes.
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

    /// Returns the keyed digest of a message (RFC 2104).
    ///
    /// - Parameters:
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - key: The key, of any length.
    ///   - message: The bytes to sign.
    /// - Throws: `NetworkError` of kind `unsupported` if the configuration of OpenSSL excludes the digest.
    public static func hmac(
        _ algorithm: HMACAlgorithm = .sha256, key: some Sequence<UInt8>, of message: some Sequence<UInt8>
    ) throws(NetworkError) -> DigestValue {
        DigestValue(bytes: try algorithm.code(key: Array(key), of: message))
    }

    /// Returns whether the bytes are equal; the duration does not depend on where they differ.
    public static func == (one: DigestValue, other: DigestValue) -> Bool { HMAC.isEqual(one.bytes, other.bytes) }
}
