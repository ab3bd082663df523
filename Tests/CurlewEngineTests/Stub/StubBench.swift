// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting

@testable import CurlewEngine

/// A loop with a stub of the transport and of the clock, and its transfers.
struct StubBench {
    let clock = StubClock()
    let share: LoopShare
    let program = Lock(StubTransport.Program())
    private let trust = TrustDomain(prepare: { true }, judge: { _ in nil })

    var loop: EventLoop { share.loop }

    init(_ configuration: EngineConfiguration = EngineConfiguration(), slots: Int = .max) {
        let program = program
        program.withLock { $0.slots = slots }
        share = LoopShare(
            EventLoop(
                configuration: configuration, clock: LoopClock(clock),
                transport: { _, deliveries, _ in StubTransport(program, deliveries) }))
    }

    /// Creates a transfer that plays a script.
    func transfer(
        _ steps: [StubTransport.Step], upload: TransferPlan.Upload = .none, limits: TransferLimits = TransferLimits(),
        _ change: (inout TransferPlan) -> Void = { _ in }
    ) -> EngineTransfer {
        let target = PlannedURL("http://stub/", host: "stub", port: 80, isSecure: false)
        var plan = TransferPlan(
            method: "GET", target: target, lines: HeaderLines([]), upload: upload, trust: trust,
            limits: SharedLimits(limits))
        change(&plan)
        let transfer = EngineTransfer(plan, on: loop)
        program.withLock { $0.scripts[transfer.id] = steps }
        return transfer
    }

    /// Returns when the loop has finished the turn that executes all records posted before.
    func settle() async {
        await loop.round()
        await loop.round()
    }

    /// Ends the stall at which the script of a transfer waits, and returns after the turn.
    func proceed(_ transfer: EngineTransfer) async {
        loop.call { ($0 as? StubTransport)?.proceed(transfer) }
        await settle()
    }

    /// The time of the turn in which the loop executes a record.
    private var turnTime: UInt64 {
        get async {
            let time = Latch<UInt64>()
            loop.call { [loop] _ in time.set(loop.deliveries.now) }
            return await time.value
        }
    }

    /// Advances the clock, and returns after the loop's turn at the new time.
    func advance(by nanoseconds: UInt64) async {
        clock.advance(by: .nanoseconds(Int64(nanoseconds)))
        while await turnTime < clock.nanoseconds {}
        await settle()
    }
}
