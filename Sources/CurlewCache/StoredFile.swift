// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import FoundationEssentials

/// An open file with a stored body, whose bytes are checked before they are used.
struct StoredFile: Sendable {
    private let file: PartialFile
    private let digests: [UInt8]
    let id: UInt64
    /// The size of the body in bytes.
    let size: Int64
    /// The encoded entry.
    let data: [UInt8]
    /// The size of the file in bytes.
    let fileSize: Int64

    /// The number of bytes at the end of a file that usually have the whole trailer.
    private static let usualTrailer: Int64 = 4096

    /// Opens a file; nil if it is missing, damaged, or not readable.
    init?(_ path: String) {
        guard let file = try? PartialFile.reading(path), let fileSize = try? file.size(),
            fileSize >= Int64(BodyFile.footerSize)
        else { return nil }
        let tailSize = min(fileSize, Self.usualTrailer)
        guard let tail = file.data(at: fileSize - tailSize, count: Int(tailSize)),
            let layout = BodyFile(footer: Array(tail.suffix(BodyFile.footerSize)), fileSize: fileSize)
        else { return nil }
        let trailer =
            layout.trailerSize <= tail.count
            ? tail.suffix(layout.trailerSize)
            : file.data(at: fileSize - Int64(layout.trailerSize), count: layout.trailerSize)
        guard let parts = trailer.flatMap({ layout.parts(of: Array($0)) }) else { return nil }
        self.file = file
        self.fileSize = fileSize
        (id, size) = (layout.id, layout.bodySize)
        data = parts.entry
        digests = parts.digests
    }

    /// The entry as it was when the body was written.
    var entry: HTTPCache.Entry? {
        CacheIndex.decode(data).flatMap { $0.id == id && $0.size == size ? $0 : nil }
    }

    /// Returns a block of the body; nil if it is damaged.
    func block(_ index: Int) -> Data? {
        let start = Int64(index) * Int64(BlockDigests.blockSize)
        let count = min(Int64(BlockDigests.blockSize), size - start)
        guard count > 0, let block = file.data(at: start, count: Int(count)),
            BodyFile.matches(block, digests, at: index)
        else { return nil }
        return block
    }

    /// Returns the whole body; nil if a block is damaged.
    func whole() -> Data? {
        guard let body = file.data(at: 0, count: Int(size)) else { return nil }
        guard let actual = BlockDigests.digests(of: body), actual == digests else { return nil }
        return body
    }
}

/// A part of a stored body in blocks, each of which is read and checked on a disk thread.
struct StoredChunks: AsyncSequence, Sendable {
    let file: StoredFile
    let range: Range<Int64>
    /// The path whose directory is the key of the jobs.
    let jobPath: String

    struct Iterator: AsyncIteratorProtocol {
        let chunks: StoredChunks
        var position: Int64

        mutating func next() async throws -> ByteChunk? {
            guard position < chunks.range.upperBound else { return nil }
            try Task.checkCancellation()
            let (file, size) = (chunks.file, Int64(BlockDigests.blockSize))
            let index = Int(position / size)
            let read = await DiskThread.caching.value(at: chunks.jobPath) { file.block(index) }
            guard let block = read ?? nil else { throw StoreFailure.damaged }
            let start = Int64(index) * size
            let part = Int(position - start)..<Int(Swift.min(chunks.range.upperBound - start, Int64(block.count)))
            position = start + Int64(part.upperBound)
            return ByteChunk(part.count == block.count ? block : block[part])
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(chunks: self, position: range.lowerBound) }
}
