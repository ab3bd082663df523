// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewCache
import Measuring

extension CurlewBench {
    /// Creates the cache of all sessions; nil for a job without a cache.
    static func makeCache(_ job: Job) async throws -> HTTPCache? {
        let cache: HTTPCache? =
            switch job.cache {
            case nil: nil
            case "memory"?: HTTPCache(store: HTTPCache.MemoryStore(limit: .mebibytes(64)))
            case let path?: try await .disk(path, limit: .gibibytes(8))
            }
        return cache
    }

    /// Stores the response before the measurement, unless storing is measured.
    static func fillCache(_ job: Job, _ session: Session) async throws {
        if job.cache == nil || job.reloads { return }
        _ = try await repeated(1, job, session)
    }

    /// Ends the process unless each response was stored, or was a fresh hit with its whole body from the store.
    static func verify(_ cache: HTTPCache, since start: HTTPCache.Statistics, _ job: Job, _ outcome: Outcome) {
        let end = cache.statistics
        let (stores, hits) = (end.stores - start.stores, end.hits - start.hits)
        let (stored, served) = (end.storedBytes - start.storedBytes, end.servedBytes - start.servedBytes)
        let (count, bytes) = job.reloads ? (stores, stored) : (hits, served)
        guard count == outcome.requests, bytes == Int64(outcome.bytes), end.staleHits == 0, end.failures == 0 else {
            die("not each of \(outcome.requests) responses was \(job.reloads ? "stored" : "a fresh hit"): \(end)")
        }
    }
}
