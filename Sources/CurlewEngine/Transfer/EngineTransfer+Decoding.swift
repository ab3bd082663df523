// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

extension EngineTransfer {
    /// The state of a run that decoding checks at every step, because decoding continues after the last byte has
    /// arrived.
    package struct Standing: Sendable {
        package var startedAt: UInt64
        /// Nil while the run has not ended.
        package var finishedAt: UInt64?
        package var isCancelled: Bool
    }

    package var standing: Standing {
        shared.withLock { shared in
            Standing(
                startedAt: shared.counters.startedAt, finishedAt: shared.outcome == nil ? nil : shared.counters.at,
                isCancelled: shared.outcome?.failure?.isCancellation == true)
        }
    }
}
