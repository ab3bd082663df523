// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// What makes one thing of the bodies of a transfer's attempts, so that none of them is the transfer's own.
///
/// It knows how far the transfer is, and where its bytes can be read while it runs.
protocol TransferKeeper: AnyObject, Sendable {
    /// How far it is, without rate and times.
    var progress: TransferProgress { get }
    /// How many bytes have come over the wire so far, in all its attempts.
    var transferred: Int64 { get }
    /// The response whose body can be read from the start, at any time and by any number of readers, while it is received;
    /// nil before its head has come.
    var copy: IncomingResponse? { get }
    /// Whether it waits until it may begin.
    var isQueued: Bool { get }
    /// Hears that the transfer was paused, or goes on.
    func pauseChanged(_ run: TransferRun)
    /// Hears that the transfer has another priority.
    func priorityChanged(_ run: TransferRun)
}

extension TransferRun {
    /// Breaks off what is on the wire of a transfer that goes on with another attempt.
    func dropAttempt() { state.withLock { $0.current }?.cancel() }

    /// Waits until the transfer is not paused any more; false when the task was cancelled first.
    func waitWhilePaused() async -> Bool {
        while true {
            let seen = signal.count
            if !isPaused { return true }
            guard await signal.wait(after: seen) else { return false }
        }
    }
}
