// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

extension SigV4Signature {
    /// The part of a signature that represents the body.
    struct HashedPayload {
        /// The digest in hexadecimal digits, or a constant in its place.
        let text: String
        var isPlaceholder = false
        var chunks: Chunks?
    }

    /// A body that is sent in signed chunks.
    struct Chunks {
        /// The number of bytes of the original body.
        let length: Int64
        let size: Int

        func body(of body: RequestBody, scope: SigV4Scope, key: [UInt8], seed: String) -> RequestBody {
            .stream(
                SignedChunks(body: body, size: size, scope: scope, key: key, seed: seed),
                length: SignedChunks.length(of: length, size: size), canReplay: body.canReplay)
        }
    }

    static let unsignedPayload = HashedPayload(text: "UNSIGNED-PAYLOAD", isPlaceholder: true)

    /// Returns the part of a request's signature that represents its body, and reads the body if necessary.
    func hashed(_ body: RequestBody, _ target: RequestTarget) async throws(NetworkError) -> HashedPayload {
        if body.isNone { return HashedPayload(text: SigV4Scope.emptyHash) }
        switch payload {
        case .unsigned: return Self.unsignedPayload
        case .chunked(let size): return try await chunked(body, size)
        case .automatic where !body.canReplay && isS3 && target.scheme == .https: return Self.unsignedPayload
        case .automatic, .signed: return HashedPayload(text: try await SignableBody(body).digest().hexadecimal)
        }
    }

    private func chunked(_ body: RequestBody, _ size: ByteCount) async throws(NetworkError) -> HashedPayload {
        let range = SignedChunks.sizes
        guard range.contains(Int(clamping: size.bytes)) else {
            throw NetworkError(
                invalid: .configuration, "Chunks of \(size) cannot be signed.",
                hint: "A chunk has 8 KiB to 16 MiB.")
        }
        guard let length = try body.knownLength() else {
            throw NetworkError(
                invalid: .body,
                "The length of the request's body is unknown, and signed chunks require it.",
                hint: "Give the body with its length, or leave it out of the signature: payload .unsigned.")
        }
        guard length > 0 else { return HashedPayload(text: SigV4Scope.emptyHash) }
        return HashedPayload(
            text: SignedChunks.payload, isPlaceholder: true,
            chunks: Chunks(length: length, size: Int(size.bytes)))
    }
}
