// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims
internal import CurlewSupport

/// The events of a run, in the order of the cases; each one occurs at most once per attempt, and may be missing.
///
/// `restarted` starts again after `queued`. `informational` occurs between `connected` and `head`, any number of times.
/// `paused` and `resumed` alternate and may occur anywhere. `ended` occurs exactly once and is the last event.
package enum EngineEvent: Sendable {
    /// The loop has received the run.
    case queued
    /// The addresses are known, or the run needs no address because it uses an open connection.
    case resolved
    /// The request is about to be sent to `remote`, an address with its port.
    case connected(remote: String, isReused: Bool)
    /// The connection is new and its TLS handshake has finished.
    case secured(version: String, cipher: String, isResumed: Bool)
    /// The last byte of the request was given to libcurl, with the number of body bytes; not sent after the head.
    case sent(Int64)
    case informational(RawHead)
    case head(RawHead)
    /// The whole body has arrived, with its number of bytes before decoding; sent only on success.
    case received(Int64)
    /// The run is paused from the user's view; a pause that was undone before the loop saw it produces no event.
    case paused
    case resumed
    /// The engine or libcurl starts the request again.
    case restarted
    case ended(EngineTransfer.Outcome)
}

/// An observer of runs.
///
/// The observer is called on the loop thread; the `ended` of a run that the loop does not know may arrive on any
/// thread. The observer must only queue the event. Continuations that depend on an event are resumed after the observer
/// was called. The times are those of the monotonic clock and never decrease.
package protocol EngineObserver: AnyObject, Sendable {
    func didObserve(_ event: EngineEvent, of transfer: EngineTransfer, at nanoseconds: UInt64)
}

/// The observers of a run and the state of their events; used on the loop, and only for runs with observers.
final class ObserverState {
    enum Sending { case pending, deferred, sent }

    var own: (any EngineObserver)?
    var common: (any EngineObserver)?
    var isPaused: Bool
    var sending = Sending.pending

    init(own: (any EngineObserver)?, common: (any EngineObserver)?, isPaused: Bool) {
        self.own = own
        self.common = common
        self.isPaused = isPaused
    }
}

extension EngineTransfer {
    // MARK: Observers, from any thread

    /// Sets the observer of this run, which replaces the previous one and gets all events from now on.
    ///
    /// If the run has ended, the observer is called at once, on this thread.
    package func watch(_ observer: any EngineObserver) {
        let (state, outcome) = shared.withLock { shared in
            if shared.outcome == nil { shared.observer = observer }
            return (shared.lifecycle.state, shared.outcome)
        }
        if let outcome {
            observer.didObserve(.ended(outcome), of: self, at: loop.clock.now())
        } else if state != .idle {
            loop.post(.watch(self))
        }
    }

    // MARK: Sending events, on the loop

    /// Sends an event to the observers; without observers the event is not created.
    @inline(__always)
    func send(_ event: @autoclosure () -> EngineEvent) {
        if let state = loopState.observerState { send(event(), state) }
    }

    private func send(_ event: EngineEvent, _ state: ObserverState) {
        let now = loop.clock.now()
        state.own?.didObserve(event, of: self, at: now)
        state.common?.didObserve(event, of: self, at: now)
    }

    /// Sets the observers that get the following events.
    func setObservers(own: (any EngineObserver)?, common: (any EngineObserver)?, isPaused: @autoclosure () -> Bool) {
        guard own != nil || common != nil else {
            loopState.observerState = nil
            return
        }
        guard let state = loopState.observerState else {
            loopState.observerState = ObserverState(own: own, common: common, isPaused: isPaused())
            return
        }
        state.own = own
        state.common = common
    }

    /// The run's own observer, whether the user sees the run as paused, and its start time; nil once the run has ended.
    var watching: (observer: (any EngineObserver)?, isPaused: Bool, startedAt: UInt64)? {
        shared.withLock { shared in
            guard shared.outcome == nil else { return nil }
            return (shared.observer, shared.lifecycle.visibleState == .paused, shared.counters.startedAt)
        }
    }

    /// Sends `paused` or `resumed` if the state that the user sees has changed since the last of these events.
    func sendPauseEvent() {
        guard let state = loopState.observerState, let isPaused = watching?.isPaused, state.isPaused != isPaused else {
            return
        }
        state.isPaused = isPaused
        send(isPaused ? .paused : .resumed, state)
    }

    /// Sends `restarted`, and `resolved` because the addresses are known.
    func sendRestartEvent() {
        guard let state = loopState.observerState else { return }
        state.sending = .pending
        send(.restarted, state)
        send(.resolved, state)
    }

    /// Sends the connection that libcurl is about to use for the request.
    func sendConnectionEvent(remote: @autoclosure () -> String, isReused: Bool, _ handle: EasyHandle) {
        guard let state = loopState.observerState else { return }
        send(.connected(remote: remote(), isReused: isReused), state)
        var facts = curlew_tls_facts()
        if plan.isSecure, !isReused, curlew_tls_read(handle.curl, &facts) {
            let version = facts.version.map { String(cString: $0) } ?? ""
            let cipher = facts.cipher.map { String(cString: $0) } ?? ""
            send(.secured(version: version, cipher: cipher, isResumed: facts.resumed), state)
        }
        guard !isBodyPulled || upload.length == 0 else { return }
        // Head and body are sent in one write right after this callback; libcurl does not request the body separately.
        state.sending = .deferred
        handle.deliveries.markDirty(self)
    }

    /// Sends `sent` for a body that libcurl sends together with the head.
    func sendDeferredSentEvent() {
        guard let state = loopState.observerState, state.sending == .deferred else { return }
        state.sending = .sent
        send(.sent(upload.length), state)
    }

    /// Sends `sent` when libcurl has read the last byte of the body.
    func sendSentEvent() {
        guard let state = loopState.observerState, state.sending != .sent, !loopState.isHeadComplete else { return }
        state.sending = .sent
        send(.sent(loopState.counters.sent), state)
    }
}

extension EventLoop {
    /// Sets the observer of all runs; nil removes it.
    ///
    /// The observer gets all events of the runs that this thread starts from now on. From other runs, it gets the
    /// events after the loop has executed this command. The call starts no thread.
    package func watch(_ observer: (any EngineObserver)?) {
        guard hasThread else { return }
        commonObserver.withLock { $0 = observer }
        post(.watchAll)
    }

    /// The observer of all runs, for ends that do not happen on the loop.
    var observerOfAll: (any EngineObserver)? { hasThread ? commonObserver.withLock { $0 } : nil }
}

extension Deliveries {
    /// Updates the observers of a run.
    func watch(_ transfer: EngineTransfer) {
        guard let watching = transfer.watching else { return }
        transfer.setObservers(own: watching.observer, common: observer, isPaused: watching.isPaused)
    }
}
