// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport

/// A use of a file, which ends with the object.
final class MediaUse: Sendable {
    let source: MediaSource

    /// Takes over a use that was counted.
    init(_ source: MediaSource) { self.source = source }

    /// Counts a further use.
    func copy() -> MediaUse {
        source.store.retain(source.key)
        return MediaUse(source)
    }

    deinit { source.store.release(source) }
}

/// One reader of a file, which reads ahead by up to 1 MiB from the disk.
final class MediaReader: Sendable {
    /// The size of a chunk in bytes.
    static let chunkSize = 256 << 10
    /// The maximum number of bytes that one job reads.
    static let batchSize = 1 << 20
    /// The memory for chunks, which all readers share.
    private static let pool = SlabPool(size: chunkSize, most: 32)

    private struct State {
        /// The chunks that were read, in reverse order.
        var chunks: [ByteChunk] = []
        var isBusy = false
        var isOver = false
        var failure: NetworkError?
    }

    private let use: MediaUse
    private let id: Int
    private let jobPath: String
    private let state = Lock(State())

    init(_ use: MediaUse, from start: Int64, to end: Int64?) {
        self.use = use.copy()
        id = use.source.addReader(from: start, to: end, isGreedy: false)
        jobPath = "\(use.source.store.jobPath(use.source.key))-\(id)/file"
    }

    deinit { use.source.removeReader(id) }

    /// Returns the next bytes; nil at the end of the range or the file.
    func next() async throws(NetworkError) -> ByteChunk? {
        if Task.isCancelled { throw use.source.cancelled() }
        let (isBusy, chunk, isOver, failure) = state.withLock { state in
            let chunk = state.isBusy ? nil : state.chunks.popLast()
            defer { if chunk == nil { state.isBusy = true } }
            return (state.isBusy, chunk, state.isOver, state.failure)
        }
        if isBusy {
            throw NetworkError(
                invalid: .usage, "Two tasks use one iterator of a media file.",
                hint: "Make an iterator for each task.", request: use.source.request, phase: .receiving)
        }
        if let chunk { return chunk }
        defer { state.withLock { $0.isBusy = false } }
        if let failure { throw failure }
        if isOver { return nil }
        do throws(NetworkError) {
            guard let (range, file, generation) = try await use.source.next(id, atMost: Int64(Self.batchSize)) else {
                state.withLock { $0.isOver = true }
                return nil
            }
            let chunks = try await read(range, file, generation)
            return state.withLock { state in
                state.chunks = chunks
                return state.chunks.popLast()
            }
        } catch {
            // The error of a transfer does not end the reader: its next call tries again.
            if error.kind == .contentChanged { state.withLock { $0.failure = error } }
            throw error
        }
    }

    /// Reads a range from the disk; returns its chunks in reverse order.
    private func read(
        _ range: Range<Int64>, _ file: PartialFile, _ generation: UInt64
    ) async throws(NetworkError) -> [ByteChunk] {
        do throws(DiskFailure) {
            return try await DiskThread.media.result(at: jobPath) { () throws(DiskFailure) in
                var chunks: [ByteChunk] = []
                chunks.reserveCapacity(Self.batchSize / Self.chunkSize)
                var position = range.lowerBound
                while position < range.upperBound {
                    let count = min(Int64(Self.chunkSize), range.upperBound - position)
                    chunks.append(ByteChunk(try file.read(at: position, count: Int(count), from: Self.pool)))
                    position += count
                }
                chunks.reverse()
                return chunks
            }
        } catch {
            use.source.damaged(generation)
            throw error.networkError(use.source.request)
        }
    }
}
