// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension EngineTransfer {
    /// What decoding, which goes on after the wire is done, has to know about the run at every step.
    package struct Standing: Sendable {
        package var startedAt: UInt64
        /// Nil while it runs.
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
