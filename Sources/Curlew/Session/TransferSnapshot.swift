// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension Session {
    /// The state of a transfer at one instant.
    public struct TransferSnapshot: Sendable, Hashable, Identifiable {
        /// The direction and destination of a transfer's data.
        public enum Kind: String, Sendable, Hashable, CaseIterable {
            /// The request has no body.
            case data
            /// The request has a body.
            case upload
            /// The response is saved to a file.
            case download
        }

        /// The transfer's id.
        public let id: UInt64
        /// The kind of the transfer.
        public let kind: Kind
        /// Queued, running or paused.
        public let state: Transfer<Void>.State
        /// The label of its request.
        public let label: String?
        /// The progress at that instant.
        public let progress: TransferProgress

        init(_ snapshot: EngineTransfer.Snapshot) {
            id = snapshot.id
            kind = snapshot.isSaved ? .download : snapshot.hasBody ? .upload : .data
            state = Transfer<Void>.State(sameAs: snapshot.state)
            label = snapshot.label
            progress = TransferProgress(snapshot.counters, rate: 0, offset: snapshot.run.plan.offset)
        }
    }
}
