// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// A reference to a transfer for displays.
///
/// It shows the transfer's state, but is no holder: it does not keep a transfer running.
package struct TransferHandle: Sendable {
    private let run: TransferRun

    package init<Output>(_ transfer: Transfer<Output>) { run = transfer.run }

    /// The identifier of the transfer, as its events carry it.
    package var id: UInt64 { run.id }

    package var state: Transfer<Void>.State { Transfer.State(sameAs: run.visibleState) }

    /// The progress of the current attempt; reading it does not start the transfer.
    package var progress: TransferProgress { run.currentProgress }

    /// Subscribes to the end of the transfer; subscribe before the transfer starts.
    ///
    /// - Returns: A function that waits for the end, passes the transfer's error to `report` and returns true. It
    ///   returns false without a report when the task is cancelled first.
    package func observeEnd() -> @Sendable (_ report: (NetworkError?) -> Void) async -> Bool {
        let events = run.observe()
        return { report in
            while let event = await events.next() {
                if case .finished(let error) = event.kind {
                    report(error)
                    return true
                }
            }
            return false
        }
    }
}
