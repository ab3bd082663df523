// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// Whether the machine has a network path to the outside, according to the kernel's links and routes.
enum Connectivity {
    /// Returns when the machine has a path to the outside, or the task is cancelled.
    static let wait: @Sendable () async -> Void = {
        let (states, continuation) = AsyncStream<Bool>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = LinkMonitor.shared.observe { continuation.yield($0.defaultLink != nil) }
        continuation.onTermination = { _ in LinkMonitor.shared.end(number) }
        for await isConnected in states where isConnected { return }
    }
}
