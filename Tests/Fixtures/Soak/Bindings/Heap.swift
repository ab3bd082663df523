// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Gives back to the system what the allocator keeps for later, so that what is resident is what is in use.
func trimHeap() {
    typealias Trim = @convention(c) (Int) -> CInt
    guard let trim = dlsym(nil, "malloc_trim") else { return }
    _ = unsafeBitCast(trim, to: Trim.self)(0)
}
