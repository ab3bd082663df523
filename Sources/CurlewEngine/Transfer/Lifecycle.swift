// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The state of a transfer: a pure state machine that rejects illegal moves instead of trapping.
///
/// idle → queued, finished · queued → running, finished · running → paused, finished · paused → running, finished ·
/// finished is final.
package struct Lifecycle: Sendable, Hashable {
    package enum State: String, Sendable, CaseIterable { case idle, queued, running, paused, finished }
    package enum Event: Sendable { case start, admit, pause, resume, finish }

    package private(set) var state = State.idle
    /// Set by `pause` in any state but finished: a transfer that is paused early stays in the queue.
    package private(set) var wantsPause = false

    package init() {}

    /// The state that users see: a transfer that is held back in the queue is paused.
    package var visibleState: State { state == .queued && wantsPause ? .paused : state }

    /// Makes the move and returns whether it changed the state.
    @discardableResult
    package mutating func on(_ event: Event) -> Bool {
        switch (state, event) {
        case (.idle, .start): state = .queued
        case (.queued, .admit) where !wantsPause: state = .running
        case (.running, .pause):
            state = .paused
            wantsPause = true
        case (.idle, .pause) where !wantsPause, (.queued, .pause) where !wantsPause: wantsPause = true
        case (.paused, .resume):
            state = .running
            wantsPause = false
        case (.idle, .resume) where wantsPause, (.queued, .resume) where wantsPause: wantsPause = false
        case (.idle, .finish), (.queued, .finish), (.running, .finish), (.paused, .finish): state = .finished
        default: return false
        }
        return true
    }
}
