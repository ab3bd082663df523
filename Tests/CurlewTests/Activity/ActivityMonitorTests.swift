// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import CurlewTesting
import FoundationEssentials
import Testing

@testable import Curlew

/// Monitors of real transfers: states and delays, the sequence, and actions.
@Suite(.timeLimit(.minutes(5)))
struct ActivityMonitorTests {
    private let clock = StubClock()
    private let session = Session()

    // MARK: States and delays

    @Test func monitorIsEnabledAndNotActiveAtFirst() {
        let monitor = ActivityMonitor(for: session)
        #expect(monitor.isEnabled && monitor.state == .notActive && !monitor.isActive)
        #expect(monitor.description == "ActivityMonitor(notActive)")
    }

    @Test func shortTransferIsNotShown() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(for: session, clock: clock)
        let transfer = await scene.start(on: session)
        #expect(monitor.state == .delayingStart && !monitor.isActive)
        await clock.waitForSleeper(at: .seconds(1))
        scene.gate().open()
        _ = try await transfer.value
        #expect(monitor.state == .delayingStart)
        clock.advance(by: .seconds(1))
        await monitor.wait(for: .notActive)
        #expect(clock.sleeps == 1)
    }

    @Test func longTransferIsShownAndShortGapsAreBridged() async throws {
        let scene = try ActivityScene(2)
        let monitor = ActivityMonitor(for: session, clock: clock)
        let first = await scene.start(0, on: session)
        await clock.waitForSleeper(at: .seconds(1))
        clock.advance(by: .seconds(1))
        await monitor.wait(for: .active)
        scene.gate(0).open()
        _ = try await first.value
        #expect(monitor.state == .delayingEnd && monitor.isActive)
        await clock.waitForSleeper(at: .milliseconds(1170))
        clock.advance(by: .milliseconds(169))
        // A transfer that starts in the gap keeps the monitor active.
        let second = await scene.start(1, on: session)
        #expect(monitor.state == .active)
        scene.gate(1).open()
        _ = try await second.value
        #expect(monitor.state == .delayingEnd)
        await clock.waitForSleeper(at: .milliseconds(1339))
        clock.advance(by: .milliseconds(170))
        await monitor.wait(for: .notActive)
        #expect(clock.sleeps == 3)
    }

    @Test func idleMonitorHasNoTimer() async throws {
        let monitor = ActivityMonitor(for: session, activationDelay: .zero, completionDelay: .zero, clock: clock)
        let scene = try ActivityScene()
        let transfer = await scene.start(on: session)
        #expect(monitor.state == .active)
        scene.gate().open()
        _ = try await transfer.value
        #expect(monitor.state == .notActive && clock.sleeps == 0)
    }

    @Test func disablingEndsTheDisplay() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let transfer = await scene.start(on: session)
        #expect(monitor.isActive)
        monitor.isEnabled = false
        #expect(!monitor.isEnabled && monitor.state == .notActive)
        scene.gate().open()
        _ = try await transfer.value
        monitor.isEnabled = true
        #expect(monitor.state == .notActive)
    }

    @Test func longestDelaysAreAccepted() async throws {
        let monitor = ActivityMonitor(
            activationDelay: .seconds(Int64.max), completionDelay: .seconds(Int64.max) * 10)
        await monitor.withActivity { #expect(monitor.state == .delayingStart) }
        monitor.isEnabled = false
        #expect(monitor.state == .notActive)
    }

    // MARK: Scopes

    @Test func scopeCountsUntilItReturnsOrThrows() async throws {
        struct Failure: Error {}
        let monitor = ActivityMonitor(immediatelyFor: session)
        let value = await monitor.withActivity { () -> Int in
            #expect(monitor.isActive)
            await monitor.withActivity {}
            #expect(monitor.isActive)
            return 7
        }
        #expect(value == 7 && !monitor.isActive)
        await #expect(throws: Failure.self) {
            try await monitor.withActivity { () async throws(Failure) in throw Failure() }
        }
        #expect(!monitor.isActive)
    }

    @Test @MainActor func scopeRunsInTheIsolationOfTheCaller() async {
        let monitor = ActivityMonitor()
        await monitor.withActivity { MainActor.assertIsolated() }
    }

    // MARK: The sequence

    @Test func sequenceBeginsWithThePresentValue() async throws {
        let scene = try ActivityScene()
        let monitor = ActivityMonitor(immediatelyFor: session)
        var iterator = monitor.makeAsyncIterator()
        #expect(await iterator.next() == false)
        let transfer = await scene.start(on: session)
        #expect(await iterator.next() == true)
        var late = monitor.makeAsyncIterator()
        #expect(await late.next() == true)
        scene.gate().open()
        _ = try await transfer.value
        #expect(await iterator.next() == false)
        #expect(await late.next() == false)
    }

    @Test func slowReaderNeverGetsAValueTwiceInARow() async {
        let monitor = ActivityMonitor(immediatelyFor: session)
        var iterator = monitor.makeAsyncIterator()
        #expect(await iterator.next() == false)
        for _ in 0..<10 { await monitor.withActivity {} }
        let scope = monitor.tracker.beginScope()
        #expect(await iterator.next() == true)
        monitor.tracker.endScope(scope)
        #expect(await iterator.next() == false)
    }

    @Test func cancellationEndsTheSequence() async {
        let log = ActivityLog()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let reader = Task { for await value in monitor { log.append(value) } }
        await log.wait(forCount: 1)
        reader.cancel()
        await reader.value
        #expect(log.values == [false])
    }

    @Test func iteratorKeepsTheMonitor() async throws {
        let log = ActivityLog()
        let scene = try ActivityScene()
        let session = session
        let reader = Task { for await value in ActivityMonitor(immediatelyFor: session) { log.append(value) } }
        await log.wait(forCount: 1)
        let transfer = await scene.start(on: session)
        await log.wait(forCount: 2)
        reader.cancel()
        await reader.value
        #expect(log.values == [false, true])
        transfer.cancel()
    }

    // MARK: Actions

    @Test func actionGetsThePresentValueAndEachChange() async {
        let log = ActivityLog()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let task = monitor.perform(log.action)
        await log.wait(forCount: 1)
        await monitor.withActivity { await log.wait(forCount: 2) }
        await log.wait(forCount: 3)
        #expect(log.values == [false, true, false])
        task.cancel()
        await task.value
    }

    @Test func actionKeepsTheMonitorUntilItsTaskIsCancelled() async {
        let log = ActivityLog()
        var monitor: ActivityMonitor? = ActivityMonitor(immediatelyFor: session)
        weak let tracker = monitor?.tracker
        _ = monitor?.tracker.beginScope()
        let task = monitor?.perform(log.action)
        await log.wait(forCount: 1)
        monitor = nil
        #expect(session.core.relay.isObserved)
        task?.cancel()
        await task?.value
        #expect(log.values == [true, false])
        #expect(tracker == nil && !session.core.relay.isObserved)
    }

    @Test func cancelledActionEndsWithFalseOnlyAfterTrue() async {
        let log = ActivityLog()
        let monitor = ActivityMonitor(immediatelyFor: session)
        let idle = monitor.perform(log.action)
        await log.wait(forCount: 1)
        idle.cancel()
        await idle.value
        #expect(log.values == [false])
        await monitor.withActivity {
            let task = monitor.perform(log.action)
            await log.wait(forCount: 2)
            task.cancel()
            await task.value
        }
        #expect(log.values == [false, true, false])
    }
}
