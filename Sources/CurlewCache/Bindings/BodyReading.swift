// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import FoundationEssentials
internal import Glibc

extension PartialFile {
    /// Returns `count` bytes at an offset; nil when there are fewer, or no memory.
    func data(at offset: Int64, count: Int) -> Data? {
        guard count > 0 else { return Data() }
        guard let memory = malloc(count) else { return nil }
        do throws(DiskFailure) {
            try read(at: offset, into: UnsafeMutableRawBufferPointer(start: memory, count: count))
        } catch {
            free(memory)
            return nil
        }
        return Data(taking: (memory, count))
    }
}
