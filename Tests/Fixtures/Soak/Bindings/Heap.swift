// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Gives back to the system what the allocator keeps for later, so that what is resident is what is in use.
func trimHeap() {
    typealias Trim = @convention(c) (Int) -> CInt
    guard let trim = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(trim, to: Trim.self)(0)
}

/// Allocates 64 MiB in small blocks, writes to them and frees all but the last.
func leaveHoles() {
    let blocks = (0..<16_384).compactMap { _ in malloc(4096).map { memset($0, 1, 4096) } }
    for block in blocks.dropLast() { free(block) }
}
