// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A latch between a test and the server: the server stalls at it (`SocketFault.stall`, `BodyReading.stalling`) until
/// the test opens it, and the test can wait until the server has come to it.
///
/// It replaces sleeping: what a test wants to see happen "meanwhile" happens between `waitUntilReached()` and `open()`.
///
/// A gate opens once and stays open. Any number of connections and tasks may wait at it.
///
/// ```swift
/// let gate = Gate()
/// server.on("GET", "/slow", .text("done").fault(.stall(gate), at: .body(2)))
/// // start the request …
/// await gate.waitUntilReached()   // two bytes of the body are sent
/// gate.open()
/// ```
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var arrivals = 0
    }

    private let state = Monitor(State())
    /// What the server's threads poll.
    let latch = EventLatch()

    /// A closed gate.
    ///
    /// It holds one descriptor as long as it lives.
    public init() {}

    /// Lets everyone through, now and later.
    ///
    /// Opening twice does nothing.
    public func open() {
        latch.set()
        state.update { $0.isOpen = true }
    }

    /// Whether `open()` was called.
    public var isOpen: Bool {
        state.read(\.isOpen)
    }

    /// How many times a connection of a server has come to the gate so far.
    public var arrivals: Int {
        state.read(\.arrivals)
    }

    /// Suspends the task until the gate is open.
    /// - Returns: false when the task was cancelled first.
    @discardableResult
    public func wait() async -> Bool {
        await state.wait { $0.isOpen ? true : nil } ?? false
    }

    /// Suspends the task until connections have come to the gate; those that came before count.
    /// - Parameter times: how many arrivals to wait for.
    /// - Returns: false when the task was cancelled first.
    @discardableResult
    public func waitUntilReached(times: Int = 1) async -> Bool {
        await state.wait { $0.arrivals >= times ? true : nil } ?? false
    }

    /// The server side: says that it is here.
    func arrive() {
        state.update { $0.arrivals += 1 }
    }

    /// The server side: says that it is here, then blocks the connection's thread until the gate opens.
    ///
    /// Throws when the server stops or the client goes away first.
    func pass(_ waiter: SocketWaiter) throws {
        arrive()
        try waiter.until(latch)
    }
}
