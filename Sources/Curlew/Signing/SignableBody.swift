// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A request's body for those who sign it: read in pieces where it is not at hand, by the task that asks, and then read
/// once more to be sent.
///
/// A body that can be read only once cannot be signed, since it would be spent before it is sent.
public struct SignableBody: Sendable {
    private let body: RequestBody

    init(_ body: RequestBody) { self.body = body }

    /// Whether the body can be read to be signed: whether it can be sent again.
    public var canBeSigned: Bool { body.canReplay }

    /// The digest of the body's bytes; of none when there is no body.
    ///
    /// - Parameter algorithm: The digest; SHA-256 unless given.
    /// - Throws: `NetworkError`: `.invalidRequest` for a body that can be read only once or a file that cannot be read,
    ///   `.bodyFailed` when its source fails, `.unsupported` where OpenSSL was told not to compute the digest.
    public func digest(_ algorithm: HMACAlgorithm = .sha256) async throws(NetworkError) -> DigestValue {
        let digest = try algorithm.digest()
        for try await piece in try pieces() { digest.update(piece) }
        return DigestValue(bytes: digest.finish())
    }

    /// The keyed digest (RFC 2104) of the body's bytes, or of something and then the body's bytes.
    ///
    /// - Parameters:
    ///   - algorithm: The digest; SHA-256 unless given.
    ///   - key: The key.
    ///   - prefix: What is signed before the body, such as a time and a dot; nothing unless given.
    /// - Throws: As ``digest(_:)`` does.
    public func hmac(
        _ algorithm: HMACAlgorithm = .sha256, key: some Sequence<UInt8> & Sendable, after prefix: String = ""
    ) async throws(NetworkError) -> DigestValue {
        let code = try algorithm.code(key: Array(key))
        code.update(prefix.utf8)
        for try await piece in try pieces() { code.update(piece) }
        return DigestValue(bytes: code.finish())
    }

    /// The body's bytes, for a signature over something else than all of them in their order.
    ///
    /// - Parameter limit: How many are taken at most; 1 MiB unless given. A longer body is `.invalidRequest`.
    /// - Throws: As ``digest(_:)`` does.
    public func bytes(upTo limit: ByteCount = .mebibytes(1)) async throws(NetworkError) -> [UInt8] {
        if let bytes = try await replayable().collected(upTo: Int(clamping: limit.bytes)) { return bytes }
        throw NetworkError(
            invalid: .body, "The request body has more than the \(limit) that are to be signed.",
            hint: "Raise the limit, or sign a digest of the body.")
    }

    private func pieces() throws(NetworkError) -> BodyPieces { BodyPieces(body: try replayable()) }

    private func replayable() throws(NetworkError) -> RequestBody {
        guard body.canReplay else {
            throw NetworkError(
                invalid: .body,
                "The request's body can be read only once, so that it cannot be signed before it is sent.",
                hint: body.replayHint(or: "leave the body out of the signature"))
        }
        return body
    }
}
