// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A transfer of a session as it stood at one instant.
public struct TransferSnapshot: Sendable, Hashable, Identifiable {
    /// What a transfer moves.
    public enum Kind: String, Sendable, Hashable, CaseIterable {
        /// The request has no body.
        case data
        /// The request has a body.
        case upload
        /// The response goes into a file.
        case download
    }

    /// The transfer's own id.
    public let id: UInt64
    /// What it moves.
    public let kind: Kind
    /// Queued, running or paused.
    public let state: Transfer<Void>.State
    /// The label its request was given.
    public let label: String?
    /// How far it was.
    public let progress: TransferProgress

    init(id: UInt64, kind: Kind, state: Transfer<Void>.State, label: String?, progress: TransferProgress) {
        self.id = id
        self.kind = kind
        self.state = state
        self.label = label
        self.progress = progress
    }
}
