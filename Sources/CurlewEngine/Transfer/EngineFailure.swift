// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Why a transfer ended without success, in the engine's words.
package struct EngineFailure: Error {
    package enum Reason: Sendable {
        /// A libcurl result, its name's text and the detail libcurl wrote.
        case curl(code: UInt32, text: String)
        case cancelled
        case closed
        case timedOut(Limit)
        case bodyTooLarge(limit: Int)
        case headTooLarge(limit: Int)
        /// The connection ended inside the response head, which libcurl reports as success.
        case headTruncated
        case untrusted(any Error)
        case bodySource(any Error)
        case bodyTooShort(sent: Int64, declared: Int64)
        case bodyTooLong(declared: Int64)
        case noRoots(places: [String])
        case unreadableRoots(String)
        case noResources(errno: Int32)
    }

    package enum Limit: Sendable { case connect, idle, total }

    /// How far the transfer had come.
    package enum Phase: Sendable {
        case preparing, queued, resolving, connecting, securing, sending, waiting, receiving
    }

    package var reason: Reason
    package var phase: Phase

    package init(_ reason: Reason, phase: Phase) {
        self.reason = reason
        self.phase = phase
    }

    package var isCancellation: Bool { if case .cancelled = reason { true } else { false } }
}
