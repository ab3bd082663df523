// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

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

private func guideToPressureOfCaches() -> (HTTPCache, HTTPCache) {
    let patient = HTTPCache.memory(limit: .mebibytes(50)) { $0.memoryPressure = nil }

    let memory = Simulated(MemoryPressure.Level.normal)  // of CurlewTesting
    let cache = HTTPCache(store: HTTPCache.MemoryStore(limit: .mebibytes(50), pressure: memory.pressure))
    memory.value = .critical  // the store removes its responses
    return (patient, cache)
}

// Reachability/PathMonitor.swift
func snippetOfPaths() async {
    for await path in PathMonitor.shared where path.isSatisfied { break }

    for await path in PathMonitor(host: "api.example.com") {
        print(path.reachability, path.outward?.name ?? "", path.isMetered ?? false)
    }
}

// Reachability/PathMonitor+Probe.swift
func snippetOfProbes() async {
    let online = PathMonitor.shared.probing(.request("https://connectivity.example.com/generate_204"))
    for await path in online { print(path) }
}

private func guideToProbes() async {
    let online = PathMonitor.shared.probing(.request("https://connectivity.example.com/generate_204"))
    for await path in online where path.isSatisfied { break }
}

// README.md
private func readmeOnPaths() async {
    for await path in PathMonitor(host: "api.example.com") { print(path) }
}

private func guideToPaths() async throws {
    for await path in PathMonitor.shared {
        print(path)  // connected by wlan0 (wifi, metered)
        print(path.reachability)  // Reachable via WiFi, also for Ethernet, as in AFNetworking
        print(path.supportsIPv6, path.hasDNS)
    }
    _ = try PathMonitor(address: "10.1.2.3")
    _ = PathMonitor(host: "db.internal")
    _ = PathMonitor.shared.probing(.connection(to: "db.internal", port: 5432))
    _ = PathMonitor.shared.probing(PathMonitor.Probe { _ in true })
    _ = RetryPolicy(limit: 5, waitsForConnectivity: true)
}

// CurlewTesting/Simulated.swift
func snippetOfSimulatedPaths() {
    let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
    let session = Session(path: network.monitor)
    // …
    network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("wlan0", kind: .wifi))
    _ = session
}

private func guideToSimulatedPaths() {
    let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .linkDown))
    let session = Session(path: network.monitor)
    network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("eth0"))
    _ = session
}
