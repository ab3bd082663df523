// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Appends received bytes to a file in large batches while further bytes arrive.
///
/// One task at a time may use it. The number of unwritten bytes is bounded; beyond the limit, ``append(_:)`` waits.
package final class FileSink: Sendable {
    /// The size of a batch in bytes.
    private static let batch = 256 << 10
    /// The time in nanoseconds after which a smaller batch is written too, for readers and in case the process ends.
    private static let patience: UInt64 = 100_000_000
    /// The maximum number of batches that wait to be written.
    private static let maximumBatches = 2

    private struct State {
        var pending: [Chunk] = []
        var pendingBytes = 0
        /// The offset in the file for the pending bytes.
        var position: Int64
        var written: Int64
        var inFlight = 0
        var submittedAt: UInt64 = 0
        var failure: DiskFailure?
        var waiter: UnsafeContinuation<Void, Never>?
        var waiterLimit = 0
    }

    package let file: PartialFile
    private let state: Lock<State>
    /// Called on the disk thread after each batch with the number of bytes in the file; before ``flush()`` returns.
    private let progressed: @Sendable (Int64) -> Void

    package init(_ file: PartialFile, at offset: Int64, progressed: @escaping @Sendable (Int64) -> Void = { _ in }) {
        self.file = file
        self.progressed = progressed
        state = Lock(State(position: offset, written: offset))
    }

    /// The number of bytes in the file, without a gap.
    package var written: Int64 { state.withLock { $0.written } }

    /// Accepts bytes, and waits while too many bytes are unwritten.
    ///
    /// - Throws: The failure of an earlier write.
    package func append(_ chunk: Chunk) async throws(DiskFailure) {
        let now = Monotonic.now()
        let isFull = state.withLock { state in
            if state.submittedAt == 0 { state.submittedAt = now }
            if let last = state.pending.last, let joined = last.joined(with: chunk) {
                state.pending[state.pending.count - 1] = joined
            } else {
                state.pending.append(chunk)
            }
            state.pendingBytes += chunk.count
            return state.pendingBytes >= Self.batch || now &- state.submittedAt >= Self.patience
        }
        if isFull { submit() }
        try await waitForWrites(upTo: Self.maximumBatches)
    }

    /// Waits until all accepted bytes are written.
    ///
    /// - Throws: The failure of a write.
    package func flush() async throws(DiskFailure) {
        submit()
        try await waitForWrites(upTo: 0)
    }

    /// Waits until at most `maximum` batches are unwritten.
    private func waitForWrites(upTo maximum: Int) async throws(DiskFailure) {
        let isWithinMaximum = state.withLock { $0.inFlight <= maximum }
        if !isWithinMaximum {
            await withUnsafeContinuation { continuation in
                let isWithinMaximum = state.withLock { state in
                    if state.inFlight <= maximum { return true }
                    state.waiter = continuation
                    state.waiterLimit = maximum
                    return false
                }
                if isWithinMaximum { continuation.resume() }
            }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    private func submit() {
        let (chunks, offset) = state.withLock { state in
            defer {
                state.position += Int64(state.pendingBytes)
                (state.pending, state.pendingBytes) = ([], 0)
            }
            if !state.pending.isEmpty { state.inFlight += 1 }
            state.submittedAt = Monotonic.now()
            return (state.pending, state.position)
        }
        if chunks.isEmpty { return }
        if !DiskThread.saving.run(at: file.path, { self.write(chunks, at: offset) }) {
            finishBatch(.failure(DiskFailure("no thread to write", file.path, 12)))
        }
    }

    private func write(_ chunks: [Chunk], at offset: Int64) {
        // Do not write after a failure: the file must have no gap.
        if let failure = state.withLock({ $0.failure }) { return finishBatch(.failure(failure)) }
        do throws(DiskFailure) {
            var position = offset
            for chunk in chunks {
                try file.write(chunk, at: position)
                position += Int64(chunk.count)
            }
            finishBatch(.success(position))
        } catch {
            finishBatch(.failure(error))
        }
    }

    private func finishBatch(_ result: Result<Int64, DiskFailure>) {
        let written = state.withLock { state in
            switch result {
            case .success(let end): state.written = end
            case .failure(let failure): state.failure = state.failure ?? failure
            }
            return state.written
        }
        // Report progress before resuming the waiter, which may end the transfer: a later report would be stale.
        progressed(written)
        let waiter = state.withLock { state in
            state.inFlight -= 1
            guard state.inFlight <= state.waiterLimit else { return UnsafeContinuation<Void, Never>?.none }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}
