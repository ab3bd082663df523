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

/// One reader of a file.
///
/// Bytes that the kernel has in memory are copied at once; a disk thread reads others, up to 1 MiB with one job.
final class MediaReader: Sendable {
    /// The size of a chunk in bytes.
    static let chunkSize = 256 << 10
    /// The maximum number of bytes that one job reads.
    static let batchSize = 1 << 20
    /// The number of bytes after which a job is used in any case, so that a reader suspends from time to time.
    private static let stretch: Int64 = 16 << 20
    /// The memory for chunks, which all readers share.
    private static let pool = SlabPool(size: chunkSize, most: 32)

    /// Bytes of the reader's file that are stored and not yet read.
    private struct Rest: Sendable {
        var range: Range<Int64>
        let file: PartialFile
        let generation: UInt64
    }

    private struct State {
        /// The chunks that were read, in reverse order.
        var chunks: [ByteChunk] = []
        var rest: Rest?
        /// The number of bytes since the last job.
        var inMemory: Int64 = 0
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
    ///
    /// It runs in the caller's isolation, so that bytes in memory cost no thread switch.
    nonisolated(nonsending) func next() async throws(NetworkError) -> ByteChunk? {
        if Task.isCancelled { throw use.source.cancelled() }
        let wasBusy = state.withLock { state in
            defer { state.isBusy = true }
            return state.isBusy
        }
        if wasBusy {
            throw NetworkError(
                invalid: .usage, "Two tasks use one iterator of a media file.",
                hint: "Make an iterator for each task.", request: use.source.request, phase: .receiving)
        }
        defer { state.withLock { $0.isBusy = false } }
        let (chunk, rest, isOver, failure) = state.withLock { state in
            (state.chunks.popLast(), state.rest, state.isOver, state.failure)
        }
        if let chunk { return chunk }
        if let failure { throw failure }
        if isOver { return nil }
        do throws(NetworkError) {
            if let rest { return try await read(rest) }
            guard let (range, file, generation) = try await use.source.next(id, atMost: Int64(Self.batchSize)) else {
                state.withLock { $0.isOver = true }
                return nil
            }
            return try await read(Rest(range: range, file: file, generation: generation))
        } catch {
            // The error of a transfer does not end the reader: its next call tries again.
            if error.kind == .contentChanged || error.kind == .cacheFailed {
                state.withLock { ($0.failure, $0.rest) = (error, nil) }
            }
            throw error
        }
    }

    /// Reads the first chunk of the rest.
    private nonisolated(nonsending) func read(_ rest: Rest) async throws(NetworkError) -> ByteChunk? {
        let range = rest.range
        let count = min(range.count, Self.chunkSize)
        if state.withLock({ $0.inMemory < Self.stretch }),
            let chunk = rest.file.readInMemory(at: range.lowerBound, count: count, from: Self.pool)
        {
            let next = range.lowerBound + Int64(chunk.count)
            state.withLock { state in
                state.inMemory += Int64(chunk.count)
                state.rest =
                    next < range.upperBound
                    ? Rest(range: next..<range.upperBound, file: rest.file, generation: rest.generation) : nil
            }
            return ByteChunk(chunk)
        }
        let chunks = try await readOnDiskThread(rest)
        return state.withLock { state in
            (state.chunks, state.rest, state.inMemory) = (chunks, nil, 0)
            return state.chunks.popLast()
        }
    }

    /// Reads the rest; returns its chunks in reverse order.
    private func readOnDiskThread(_ rest: Rest) async throws(NetworkError) -> [ByteChunk] {
        do throws(DiskFailure) {
            return try await DiskThread.media.result(at: jobPath) { () throws(DiskFailure) in
                var chunks: [ByteChunk] = []
                chunks.reserveCapacity(Self.batchSize / Self.chunkSize)
                var position = rest.range.lowerBound
                while position < rest.range.upperBound {
                    let count = min(Int64(Self.chunkSize), rest.range.upperBound - position)
                    chunks.append(ByteChunk(try rest.file.read(at: position, count: Int(count), from: Self.pool)))
                    position += count
                }
                chunks.reverse()
                return chunks
            }
        } catch {
            use.source.damaged(rest.generation)
            throw error.networkError(use.source.request)
        }
    }
}
