// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew

// Snippets of Documentation/Machine.md and of the doc comments, word for word; parameters provide the values that a
// snippet assumes.

// MemoryPressure/MemoryPressure.swift
func snippetOfMemoryPressure(_ thumbnails: inout [String: [UInt8]]) async {
    for await level in MemoryPressure.shared where level >= .warning {
        thumbnails.removeAll()
    }
}

private func guideToMemorySupport() async {
    print(await MemoryPressure.shared.support)
    // watches /proc/pressure/memory, /sys/fs/cgroup/app.slice/memory.pressure, …
}

private func guideToPressureOfCaches() -> (HTTPCache.MemoryStore, HTTPCache) {
    let (levels, pressure) = AsyncStream<MemoryPressure.Level>.makeStream()
    let store = HTTPCache.MemoryStore(limit: .mebibytes(50), pressure: MemoryPressure { levels })
    let cache = HTTPCache.memory(limit: .mebibytes(50)) { $0.memoryPressure = nil }
    pressure.yield(.critical)
    return (store, cache)
}
