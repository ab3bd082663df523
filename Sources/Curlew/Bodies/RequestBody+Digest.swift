// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Request {
    /// The digest of the body's bytes; nil when OpenSSL has none of that name.
    ///
    /// Bytes at hand are digested at once, all else is read on a thread of its own; what can be read only once is then
    /// spent.
    /// - Throws: `NetworkError` of kind `invalidRequest`, `bodyFailed` or `cancelled`.
    func bodyDigest(_ algorithm: MessageDigest.Algorithm) async throws(NetworkError) -> [UInt8]? {
        switch body.content {
        case .none: return MessageDigest.digest(algorithm, of: [])
        case .bytes(let bytes): return MessageDigest.digest(algorithm, of: bytes)
        default: break
        }
        guard let digest = MessageDigest(algorithm) else { return nil }
        let upload: TransferPlan.Upload
        do throws(SourceFailure) {
            upload = try body.upload()
        } catch {
            throw .unusableBody(error, self)
        }
        // One thread reads, and is done before the end.
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
