// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Where a transfer stands: a pure machine whose illegal moves are refused, not trapped.
///
/// idle → queued, finished · queued → running, finished · running → paused, finished · paused → running, finished ·
/// finished → nowhere.
package struct Lifecycle: Sendable, Hashable {
    package enum State: UInt8, Sendable, Hashable { case idle, queued, running, paused, finished }
    package enum Event: Sendable { case start, admit, pause, resume, finish }

    package private(set) var state = State.idle
    /// Set by `pause` in any state but finished: a transfer paused early is held back when it would be admitted.
    package private(set) var wantsPause = false

    package init() {}

    /// The state to show: a transfer held back in the queue is paused.
    package var visibleState: State { state == .queued && wantsPause ? .paused : state }

    /// Makes the move and says whether it changed anything.
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
