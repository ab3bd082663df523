// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Returns free heap memory to the system, so that the resident memory is the memory in use.
func trimHeap() {
    typealias Trim = @convention(c) (Int) -> CInt
    guard let trim = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(trim, to: Trim.self)(0)
}

/// Allocates 64 MiB in small blocks, writes to them and frees all blocks except the last.
func fragmentHeap() {
    let blocks = (0..<16_384).compactMap { _ in malloc(4096).map { memset($0, 1, 4096) } }
    for block in blocks.dropLast() { free(block) }
}
