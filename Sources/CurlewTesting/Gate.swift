// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A latch between a test and the server: the server stalls at it (`SocketFault.stall`, `BodyReading.stalling`) until
/// the test opens it, and the test can wait until the server has reached it.
///
/// A gate replaces sleeping: the test does its work "meanwhile", between `waitUntilReached()` and `open()`.
///
/// A gate opens once and stays open. Any number of connections and tasks may wait at it.
///
/// ```swift
/// let gate = Gate()
/// server.on("GET", "/slow", .text("done").fault(.stall(gate), at: .body(2)))
/// // start the request …
/// await gate.waitUntilReached()  // two bytes of the body are sent
/// gate.open()
/// ```
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
    }

    private let state = Monitor(State())
    /// The latch that the server's threads poll.
    let latch = EventLatch()

    /// Creates a closed gate.
    ///
    /// The gate holds one descriptor for as long as it lives.
    public init() {}

    /// Opens the gate for all current and future waiters.
    ///
    /// A second call does nothing.
    public func open() {
        latch.set()
        state.update { $0.isOpen = true }
    }

    /// Whether `open()` was called.
    public var isOpen: Bool {
        state.read(\.isOpen)
    }

    /// The number of times a server connection has reached the gate so far.
    public var arrivals: Int {
        state.read(\.arrivals)
    }

    /// Suspends the task until the gate is open.
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func wait() async -> Bool {
        await state.wait { $0.isOpen ? true : nil } ?? false
    }

    /// Suspends the task until connections have reached the gate; earlier arrivals count.
    /// - Parameter times: The number of arrivals to wait for.
    /// - Returns: False if the task was cancelled first.
    @discardableResult
    public func waitUntilReached(times: Int = 1) async -> Bool {
        await state.wait { $0.arrivals >= times ? true : nil } ?? false
    }

    /// Reports that the server has reached the gate.
    func arrive() {
        state.update { $0.arrivals += 1 }
    }

    /// Reports that the server has reached the gate, then blocks the connection's thread until the gate opens.
    ///
    /// Throws if the server stops or the client disconnects first.
    func pass(_ waiter: SocketWaiter) throws {
        arrive()
        try waiter.until(latch)
    }
}
