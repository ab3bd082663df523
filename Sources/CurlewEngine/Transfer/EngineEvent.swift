// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// What happens to a run, in the order of the cases; each at most once for each attempt on the wire, and each may be
/// missing.
///
/// `restarted` begins anew after `queued`. `informational` comes between `connected` and `head`, any number of times;
/// `paused` and `resumed` take turns anywhere; `ended` comes exactly once, and nothing after it.
package enum EngineEvent: Sendable {
    /// The loop has taken it.
    case queued
    /// The addresses are known, or an open connection needs none.
    case resolved
    /// The request is about to be sent to `remote`, an address with its port.
    case connected(remote: String, isReused: Bool)
    /// The connection is new and its handshake is done.
    case secured(version: String, cipher: String, isResumed: Bool)
    /// The last byte of the request was handed over; with how many bytes of body. Not told once the head is there.
    case sent(Int64)
    case informational(RawHead)
    case head(RawHead)
    /// The whole body has come, as told at success only; with its bytes as they were on the wire.
    case received(Int64)
    /// As the user sees it; a pause that was taken back before the loop heard of it is none.
    case paused
    case resumed
    /// The request is begun again, by us or by libcurl.
    case restarted
    case ended(EngineTransfer.Outcome)
}

/// Somebody who is told what happens to runs.
///
/// Called on the loop thread, for the `ended` of a run that the loop has not got on any thread: it must only queue.
/// Continuations that an event concerns are resumed after it was told. Times are the monotonic clock's and never fall.
package protocol EngineWitness: AnyObject, Sendable {
    func witnessed(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64)
}

/// Who watches a run, and what was told; on the loop, and only for runs that somebody watches.
final class Watch {
    enum Sending { case untold, owed, told }

    var own: (any EngineWitness)?
    var common: (any EngineWitness)?
    var isPaused: Bool
    var sending = Sending.untold

    init(own: (any EngineWitness)?, common: (any EngineWitness)?, isPaused: Bool) {
        self.own = own
        self.common = common
        self.isPaused = isPaused
    }
}

extension EngineTransfer {
    // MARK: Watching, from any thread

    /// Makes `witness` hear of everything from now on; instead of the one before, if there was one.
    ///
    /// Of a run that has ended it is told so at once, on this thread.
    package func watch(_ witness: any EngineWitness) {
        let (state, outcome) = shared.withLock { shared in
            if shared.outcome == nil { shared.witness = witness }
            return (shared.lifecycle.state, shared.outcome)
        }
        if let outcome {
            witness.witnessed(.ended(outcome), of: self, at: Monotonic.now())
        } else if state != .idle {
            loop.post(.watch(self))
        }
    }

    // MARK: Telling, on the loop

    /// Tells whoever watches; without anyone the event is not even made.
    @inline(__always)
    func tell(_ event: @autoclosure () -> EngineEvent) {
        if let watch = wire.watch { tell(event(), watch) }
    }

    private func tell(_ event: EngineEvent, _ watch: Watch) {
        let now = Monotonic.now()
        watch.own?.witnessed(event, of: self, at: now)
        watch.common?.witnessed(event, of: self, at: now)
    }

    /// Takes note of who watches from now on.
    func setWitnesses(own: (any EngineWitness)?, common: (any EngineWitness)?, isPaused: @autoclosure () -> Bool) {
        guard own != nil || common != nil else {
            wire.watch = nil
            return
        }
        guard let watch = wire.watch else {
            wire.watch = Watch(own: own, common: common, isPaused: isPaused())
            return
        }
        watch.own = own
        watch.common = common
    }

    /// The witness of this run alone, whether the user sees it as paused, and when it was started; nil once it has ended.
    var watching: (witness: (any EngineWitness)?, isPaused: Bool, startedAt: UInt64)? {
        shared.withLock { shared in
            guard shared.outcome == nil else { return nil }
            return (shared.witness, shared.lifecycle.visibleState == .paused, shared.counters.startedAt)
        }
    }

    /// Tells when the user sees another state than was told.
    func tellPause() {
        guard let watch = wire.watch, let isPaused = watching?.isPaused, watch.isPaused != isPaused else { return }
        watch.isPaused = isPaused
        tell(isPaused ? .paused : .resumed, watch)
    }

    /// Tells that the request begins anew; it has its addresses.
    func tellRestart() {
        guard let watch = wire.watch else { return }
        watch.sending = .untold
        tell(.restarted, watch)
        tell(.resolved, watch)
    }

    /// Tells over which connection libcurl is about to send the request.
    func tellConnection(remote: @autoclosure () -> String, isReused: Bool, _ handle: EasyHandle) {
        guard let watch = wire.watch else { return }
        tell(.connected(remote: remote(), isReused: isReused), watch)
        var facts = curlew_tls_facts()
        if plan.isSecure, !isReused, curlew_tls_read(handle.curl, &facts) {
            let version = facts.version.map { String(cString: $0) } ?? ""
            let cipher = facts.cipher.map { String(cString: $0) } ?? ""
            tell(.secured(version: version, cipher: cipher, isResumed: facts.resumed), watch)
        }
        guard !isBodyPulled || upload.length == 0 else { return }
        // Head and body leave in one write right after this, without our being asked for anything.
        watch.sending = .owed
        handle.domain.transport.markDirty(self)
    }

    /// Tells that all was sent where libcurl does not ask for the body.
    func tellOwedSending() {
        guard let watch = wire.watch, watch.sending == .owed else { return }
        watch.sending = .told
        tell(.sent(upload.length), watch)
    }

    /// Tells that libcurl has got the last byte of the body.
    func tellSending() {
        guard let watch = wire.watch, watch.sending != .told, !wire.isHeadComplete else { return }
        watch.sending = .told
        tell(.sent(wire.counters.sent), watch)
    }
}

extension EventLoop {
    /// Makes `witness`, or nobody, hear of all runs: of those that this thread starts from now on everything, of others
    /// what happens once the loop has heard of it.
    ///
    /// No thread is started for it.
    package func watch(_ witness: (any EngineWitness)?) {
        guard hasThread else { return }
        commonWitness.withLock { $0 = witness }
        post(.watchEveryone)
    }

    /// Who watches all runs, for an end that the loop has no part in.
    var witnessOfAll: (any EngineWitness)? { hasThread ? commonWitness.withLock { $0 } : nil }
}

extension CurlTransport {
    /// Looks again at who watches a run.
    func watch(_ transfer: EngineTransfer) {
        guard let watching = transfer.watching else { return }
        transfer.setWitnesses(own: watching.witness, common: witness, isPaused: watching.isPaused)
    }

    /// Looks again at who watches all runs.
    func watchEveryone() {
        witness = loop.witnessOfAll
        for transfer in everyone { watch(transfer) }
    }
}
