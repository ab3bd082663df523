// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials

@testable import Curlew

/// A server whose responses stall until a test opens their gates.
struct ActivityScene {
    let server: MockServer
    private let gates: [String: Gate]

    /// - Parameter count: The number of paths with gates: "/0", "/1" and so on; other paths respond at once.
    init(_ count: Int = 1) throws {
        let gates = Dictionary(uniqueKeysWithValues: (0..<count).map { ("/\($0)", Gate()) })
        self.gates = gates
        server = try MockServer { request in
            let response = MockResponse.text("done")
            return gates[request.path].map { response.fault(.stall($0), at: .body(2)) } ?? response
        }
    }

    func request(_ number: Int = 0) -> Request { Request(server.url("/\(number)")) }

    func gate(_ number: Int = 0) -> Gate { gates["/\(number)"]! }

    /// Starts a transfer, and returns it when its response has begun.
    func start(_ number: Int = 0, on session: Session) async -> Transfer<Data> {
        let transfer = session.transfer(request(number)).start()
        await gate(number).waitUntilReached()
        return transfer
    }
}

extension ActivityMonitor {
    /// A monitor without delays, so that it is active exactly while an activity runs.
    convenience init(immediatelyFor session: Session, _ others: Session...) {
        self.init(for: [session] + others, activationDelay: .zero, completionDelay: .zero)
    }

    /// The ids of the transfers that count now.
    var transfers: Set<UInt64> { tracker.transfers }

    /// Waits until the monitor has a state.
    func wait(for state: State) async {
        while true {
            let seen = tracker.signal.count
            if self.state == state { return }
            guard await tracker.signal.wait(after: seen) else { return }
        }
    }
}

/// The values of an action or a reader, for a test that waits for them.
final class ActivityLog: Sendable {
    private let state = Lock([Bool]())
    private let signal = Signal()

    var values: [Bool] { state.withLock { $0 } }

    func append(_ value: Bool) {
        state.withLock { $0.append(value) }
        signal.send()
    }

    func wait(forCount count: Int) async {
        while true {
            let seen = signal.count
            if values.count >= count { return }
            guard await signal.wait(after: seen) else { return }
        }
    }

    var action: ActivityMonitor.Action { ActivityMonitor.Action { self.append($0) } }
}
