// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// A request's body for code that signs it.
///
/// A body that is not in memory is read in chunks by the task that requests a digest, and is read once more to be sent.
///
/// A body that can be read only once cannot be signed, because signing it would use it up.
public struct SignableBody: Sendable {
    private let body: RequestBody

    init(_ body: RequestBody) { self.body = body }

    /// Whether the body can be read for signing, that is, whether it can be sent again.
    public var canBeSigned: Bool { body.canReplay }

    /// Returns the digest of the body's bytes; the digest of zero bytes when there is no body.
    ///
    /// - Parameter algorithm: The digest; SHA-256 unless given.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that can be read only once or a file that cannot be read,
    ///   `.bodyFailed` when its source fails, `.unsupported` if the configuration of OpenSSL excludes the digest.
    public func digest(_ algorithm: HMACAlgorithm = .sha256) async throws(NetworkError) -> DigestValue {
        let digest = try algorithm.digest()
        for try await piece in try pieces() { digest.update(piece) }
        return DigestValue(bytes: digest.finish())
    }

    /// Returns the keyed digest (RFC 2104) of a prefix and the body's bytes.
    ///
    /// - Parameters:
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - key: The key.
    ///   - prefix: The text that is signed before the body, such as a time and a dot; empty unless given.
    /// - Throws: As ``digest(_:)`` does.
    public func hmac(
        _ algorithm: HMACAlgorithm = .sha256, key: some Sequence<UInt8> & Sendable, after prefix: String = ""
    ) async throws(NetworkError) -> DigestValue {
        let code = try algorithm.code(key: Array(key))
        code.update(prefix.utf8)
        for try await piece in try pieces() { code.update(piece) }
        return DigestValue(bytes: code.finish())
    }

    /// Returns the body's bytes, for a signature over selected or reordered bytes.
    ///
    /// - Parameter limit: The maximum length; 1 MiB unless given. A longer body throws `.invalidRequest`.
    /// - Throws: As ``digest(_:)`` does.
    public func bytes(upTo limit: ByteCount = .mebibytes(1)) async throws(NetworkError) -> [UInt8] {
        if let bytes = try await replayable().collected(upTo: Int(clamping: limit.bytes)) { return bytes }
        throw NetworkError(
            invalid: .body, "The request body is longer than the limit of \(limit) for signing.",
            hint: "Raise the limit, or sign a digest of the body.")
    }

    private func pieces() throws(NetworkError) -> BodyChunks { BodyChunks(body: try replayable()) }

    private func replayable() throws(NetworkError) -> RequestBody {
        guard body.canReplay else {
            throw NetworkError(
                invalid: .body,
                "The request's body can be read only once, so it cannot be signed before it is sent.",
                hint: body.replayHint(or: "leave the body out of the signature"))
        }
        return body
    }
}
