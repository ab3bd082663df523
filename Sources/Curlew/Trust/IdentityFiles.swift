// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials

/// Files that an identity is read from, looked at each time it is needed.
final class IdentityFiles: Sendable {
    private struct State {
        var stamps: [FileStamp?] = []
        var identity: X509Identity?
        /// What could not be read was complained about once.
        var complaint: [FileStamp?]?
    }

    let paths: [String]
    private let read: @Sendable () throws(InvalidTrust) -> X509Identity
    private let state = Lock(State())

    init(_ paths: [String], read: @escaping @Sendable () throws(InvalidTrust) -> X509Identity) {
        self.paths = paths
        self.read = read
    }

    /// Reads them for the first time.
    func first() throws(InvalidTrust) -> X509Identity {
        // Before the reading: what changes meanwhile is read again.
        let stamps = paths.map { FileStamp($0) }
        let identity = try read()
        state.withLock { $0 = State(stamps: stamps, identity: identity) }
        return identity
    }

    /// What was read last.
    var last: X509Identity? { state.withLock { $0.identity } }

    /// What the files hold now, or held when they could last be read.
    ///
    /// While one thread reads, others take what was there before.
    func current(_ report: (InvalidTrust) -> Void) -> X509Identity? {
        let stamps = paths.map { FileStamp($0) }
        let (known, isChanged) = state.withLock { state in
            let isChanged = state.stamps != stamps
            state.stamps = stamps
            return (state.identity, isChanged)
        }
        guard isChanged else { return known }
        do throws(InvalidTrust) {
            let identity = try read()
            state.withLock { state in
                // Nobody has found a newer one meanwhile.
                if state.stamps == stamps { state.identity = identity }
            }
            return identity
        } catch {
            let isNew = state.withLock { state in
                // Permissions and the like change no stamp, so it is tried again.
                if state.stamps == stamps { state.stamps = [] }
                defer { state.complaint = stamps }
                return state.complaint != stamps
            }
            if isNew { report(error) }
            return known
        }
    }
}
