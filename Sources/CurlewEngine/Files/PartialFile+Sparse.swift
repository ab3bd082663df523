// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import Glibc

extension PartialFile {
    /// Opens a file of a private directory, and creates it if it is missing, without a lock of its own.
    ///
    /// - Throws: A failure with `isForeignStore` if it is not a regular file of this user only.
    package static func open(_ name: String, in directory: PrivateDirectory) throws(DiskFailure) -> PartialFile {
        PartialFile(directory.path(of: name), try directory.file(name))
    }

    /// Reads bytes at an offset into memory of a pool.
    ///
    /// - Parameter count: The number of bytes, at most the size of the pool's blocks.
    /// - Throws: A failure with `EIO` when the file ends before.
    package func read(at offset: Int64, count: Int, from pool: SlabPool) throws(DiskFailure) -> Chunk {
        let slab = pool.take()
        try read(at: offset, into: UnsafeMutableRawBufferPointer(start: slab.memory, count: min(count, slab.capacity)))
        return Chunk(slab: slab, offset: 0, count: min(count, slab.capacity))
    }

    /// Reads bytes that the kernel has in memory, without waiting for the disk; any thread may call it.
    ///
    /// - Parameter count: The maximum number of bytes, at most the size of the pool's blocks.
    /// - Returns: The bytes, at least one; nil if the first of them is not in memory, or the file system cannot tell.
    package func readInMemory(at offset: Int64, count: Int, from pool: SlabPool) -> Chunk? {
        let slab = pool.take()
        let done = curlew_read_in_memory(descriptor.number, slab.memory, min(count, slab.capacity), offset)
        return done > 0 ? Chunk(slab: slab, offset: 0, count: done) : nil
    }

    /// Returns whether the file has data, and no hole, in a range of bytes.
    ///
    /// A file system that cannot tell reports data up to the end of the file.
    package func hasData(in range: Range<Int64>) -> Bool {
        if range.isEmpty { return true }
        guard let size = try? size(), range.upperBound <= size else { return false }
        let (data, hole) = (CInt(3), CInt(4))  // SEEK_DATA and SEEK_HOLE of lseek(2)
        let start = lseek(descriptor.number, off_t(range.lowerBound), data)
        if start < 0 { return errno != ENXIO }
        guard start == off_t(range.lowerBound) else { return false }
        return lseek(descriptor.number, start, hole) >= off_t(range.upperBound)
    }

    /// Writes a chunk at an offset.
    package func write(_ chunk: Chunk, at offset: Int64) throws(DiskFailure) {
        let result = chunk.withUnsafeBytes { bytes -> Result<Void, DiskFailure> in
            do throws(DiskFailure) { return .success(try write(bytes, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }
}
