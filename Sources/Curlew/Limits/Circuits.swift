// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// The circuit of each origin, shared by all tasks.
final class Circuits: Sendable {
    private let rule: Circuit.Rule
    private let time: @Sendable () -> Duration
    private let state = Lock(OriginTable<Circuit>())

    init(_ rule: Circuit.Rule, time: @escaping @Sendable () -> Duration) {
        self.rule = rule
        self.time = time
    }

    func admit(_ origin: String) -> Circuit.Admission {
        let now = time()
        return state.withLock { $0.change(origin) { $0.admit(now: now) } }
    }

    func record(_ origin: String, _ admission: Circuit.Admission, _ outcome: Circuit.Outcome) {
        let now = time()
        state.withLock { $0.change(origin) { $0.record(admission, outcome, rule, now: now) } }
    }
}
