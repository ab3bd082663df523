// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

extension Request {
    /// Returns the digest of the body's bytes, or nil when OpenSSL has no digest of that name.
    ///
    /// Bytes in memory are digested at once. All other bodies are read on a separate thread; a body that can be read
    /// only once is then used up.
    /// - Throws: `NetworkError` of kind `invalidRequest`, `bodyFailed` or `cancelled`.
    package func bodyDigest(_ algorithm: MessageDigest.Algorithm) async throws(NetworkError) -> [UInt8]? {
        if body.isNone { return MessageDigest.digest(algorithm, of: []) }
        if let bytes = body.bytes { return MessageDigest.digest(algorithm, of: bytes) }
        guard let digest = MessageDigest(algorithm) else { return nil }
        let upload: TransferPlan.Upload
        do throws(SourceFailure) {
            upload = try body.upload()
        } catch {
            throw .unusableBody(error, self)
        }
        // A single thread calls the closure, and it has finished when `read` returns.
        let shared = Lock(digest)
        do throws(BodySpool.Failure) {
            try await BodySpool.read(upload) { bytes in shared.withLock { $0.update(bytes) } }
        } catch .cancelled {
            throw .cancelled(.preparing, self)
        } catch {
            throw NetworkError(error).with(request: self)
        }
        return shared.withLock { $0.finish() }
    }
}
