// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import CurlewSupport

/// The files of an identity, which are checked for changes each time the identity is needed.
final class IdentityFiles: Sendable {
    private struct State {
        var stamps: [FileStamp?] = []
        var identity: X509Identity?
        /// The stamps of the files at the last reported failure, so that each failure is reported once.
        var reportedStamps: [FileStamp?]?
    }

    let paths: [String]
    private let read: @Sendable () throws(TrustFailure.InvalidPolicy) -> X509Identity
    private let state = Lock(State())

    init(_ paths: [String], read: @escaping @Sendable () throws(TrustFailure.InvalidPolicy) -> X509Identity) {
        self.paths = paths
        self.read = read
    }

    /// Reads the files for the first time.
    func first() throws(TrustFailure.InvalidPolicy) -> X509Identity {
        // Take the stamps before reading: a change during the read causes another read later.
        let stamps = paths.map { FileStamp($0) }
        let identity = try read()
        state.withLock { $0 = State(stamps: stamps, identity: identity) }
        return identity
    }

    /// The identity that was last read.
    var last: X509Identity? { state.withLock { $0.identity } }

    /// Returns the current identity of the files, or the last readable one.
    ///
    /// While one thread reads, other threads get the previous identity.
    /// - Parameter report: Called once for each change that makes the files unreadable.
    func current(_ report: (TrustFailure.InvalidPolicy) -> Void) -> X509Identity? {
        let stamps = paths.map { FileStamp($0) }
        let (known, isChanged) = state.withLock { state in
            let isChanged = state.stamps != stamps
            state.stamps = stamps
            return (state.identity, isChanged)
        }
        guard isChanged else { return known }
        do throws(TrustFailure.InvalidPolicy) {
            let identity = try read()
            state.withLock { state in
                // Store the identity only if no other thread found newer files in the meantime.
                if state.stamps == stamps { state.identity = identity }
            }
            return identity
        } catch {
            let isNew = state.withLock { state in
                // A change of permissions, for example, does not change the stamp, so the next call retries.
                if state.stamps == stamps { state.stamps = [] }
                defer { state.reportedStamps = stamps }
                return state.reportedStamps != stamps
            }
            if isNew { report(error) }
            return known
        }
    }
}
