// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer.LockedState {
    /// Appends chunks that arrived; adjacent ones are joined, so that a server that sends single bytes does not fill
    /// the list.
    mutating func append(_ arrived: [Chunk]) {
        for chunk in arrived {
            if firstChunk < chunks.count, let last = chunks.indices.last, let joined = chunks[last].joined(with: chunk)
            {
                chunks[last] = joined
            } else {
                chunks.append(chunk)
            }
        }
    }

    /// Returns the next step for the reader, in this order: informational heads, head, progress, bytes, trailers, the
    /// end.
    mutating func takeStep(withProgress: Bool) -> EngineTransfer.Step? {
        if !informational.isEmpty, outcome?.failure?.isCancellation != true {
            return .informational(informational.removeFirst())
        }
        if let head, !isHeadTaken, outcome?.failure?.isCancellation != true {
            isHeadTaken = true
            return .head(head)
        }
        let isLast = outcome != nil && firstChunk == chunks.count
        if isLast, !areTrailersTaken, let trailers = outcome?.trailers, !trailers.isEmpty {
            areTrailersTaken = true
            return .trailers(trailers)
        }
        // A cancelled task receives one step only; after that, AsyncThrowingStream ends without requesting another
        // step.
        if withProgress, isProgressDue, outcome == nil || isLast, outcome?.failure?.isCancellation != true {
            isProgressDue = false
            return .progress(counters)
        }
        if firstChunk < chunks.count {
            // The list must not keep the memory of a taken chunk alive.
            var chunk = Chunk.empty
            swap(&chunk, &chunks[firstChunk])
            firstChunk += 1
            buffered -= chunk.count
            if firstChunk == chunks.count {
                chunks.removeAll(keepingCapacity: true)
                firstChunk = 0
            } else if firstChunk >= 32 && firstChunk * 2 >= chunks.count {
                chunks.removeFirst(firstChunk)
                firstChunk = 0
            }
            return .bytes(chunk)
        }
        return outcome.map { .end($0) }
    }
}
