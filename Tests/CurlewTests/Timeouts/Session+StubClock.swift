// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport

@testable import Curlew
@testable import CurlewEngine

// Sessions whose time a test advances. Sockets and libcurl are real, so the limits that libcurl applies do not count.
extension Session {
    init(clock: StubClock, _ configure: (inout Session.Configuration) -> Void = { _ in }) {
        var configuration = Session.Configuration()
        configure(&configuration)
        self.init(core: SessionCore(configuration, trust: SystemTrust(), clock: LoopClock(clock)))
    }

    /// Advances the clock, and returns after the turn of the loop at the new time.
    nonisolated func advance(_ clock: StubClock, by duration: Duration) async {
        clock.advance(by: duration)
        while await turnTime < clock.nanoseconds {}
    }

    /// The time of the loop's current turn.
    private var turnTime: UInt64 { core.loop.deliveries.now }
}
