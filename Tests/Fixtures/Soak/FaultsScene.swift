// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Glibc

/// Mixed traffic with servers that fail at random, in rounds of ten seconds, each with its own sessions and servers.
///
/// It checks that every transfer ends, that no error is an internal one, and that later rounds leave no more
/// memory, descriptors and threads than the first ones.
struct FaultsScene {
    private static let round = Duration.seconds(10)
    private static let clients = 40
    /// The number of rounds after which a process has all threads, caches and memory that it needs.
    private static let warmUp = 3
    /// The permitted growth of average resident memory from the second to the last third of the time, in KiB.
    ///
    /// Averages are used because single rounds differ by more than this.
    private static let tolerance = 8 << 10

    let time: Duration
    let seed: UInt64

    /// Runs all rounds and returns the exit status.
    func run() async throws -> Int32 {
        print("faults: \(time.components.seconds) s, seed \(seed)")
        let clock = ContinuousClock()
        let end = clock.now + time
        var (rounds, printed) = (0, clock.now)
        var outcomes: [String: Int] = [:]
        var warm: ProcessFigures?
        var memory: [Int] = []
        var violations: [String] = []
        while clock.now < end {
            let found = try await round(seed &+ UInt64(rounds) &* 1000, until: min(end, clock.now + Self.round))
            outcomes.merge(found.outcomes, uniquingKeysWith: +)
            violations += found.violations
            rounds += 1
            if rounds == Self.warmUp { warm = await .atRest() }
            memory.append(ProcessFigures.trimmed())
            if printed.duration(to: clock.now) >= .seconds(30) {
                printed = clock.now
                report(rounds, outcomes, await .atRest())
            }
        }
        let last = await ProcessFigures.atRest()
        report(rounds, outcomes, last)
        for (outcome, count) in outcomes.sorted(by: { $0.key < $1.key }) { print("  \(count)\t\(outcome)") }
        return judge(outcomes, violations, warm ?? last, last, memory)
    }

    private func report(_ rounds: Int, _ outcomes: [String: Int], _ figures: ProcessFigures) {
        let total = outcomes.values.reduce(0, +)
        print(
            "round \(rounds): \(total) transfers, RSS \(ProcessFigures.trimmed()) KiB,",
            "\(figures.descriptors.count) descriptors,",
            "\(ProcessFigures.memory("Threads")) threads (\(figures.loopThreads) loops)")
        fflush(nil)
    }

    private func judge(
        _ outcomes: [String: Int], _ violations: [String], _ warm: ProcessFigures, _ last: ProcessFigures,
        _ memory: [Int]
    ) -> Int32 {
        var wrong = outcomes.keys.filter { $0.contains("internal") || $0.contains("CORRUPT") }
        if last.descriptors != warm.descriptors {
            wrong.append("descriptors were \(warm.descriptors) and are \(last.descriptors)")
        }
        if last.descriptors != warm.descriptors { ProcessFigures.sockets().forEach { print("left: \($0)") } }
        if last.loopThreads + last.sourceThreads > 0 { wrong.append("threads are left") }
        let third = max(1, memory.count / 3)
        func mean(_ samples: ArraySlice<Int>) -> Int { samples.reduce(0, +) / max(1, samples.count) }
        let growth = mean(memory.suffix(third)) - mean(memory.dropLast(third).suffix(third))
        print("in the last third: \(growth) KiB of memory")
        print("since the warm-up: \(last.descriptors.count - warm.descriptors.count) fds")
        // A few rounds are not enough for a verdict.
        if memory.count >= 30 && growth > Self.tolerance { wrong.append("\(growth) KiB more in the last third") }
        for violation in Set(violations).sorted() { print("a server saw: \(violation)") }
        for line in wrong { print("WRONG: \(line)") }
        print(wrong.isEmpty ? "faults: fine" : "faults: \(wrong.count) things are wrong")
        return wrong.isEmpty ? 0 : 1
    }

    // MARK: One round

    private func round(
        _ seed: UInt64, until end: ContinuousClock.Instant
    ) async throws -> (outcomes: [String: Int], violations: [String]) {
        let authorities = [try TestAuthority(), try TestAuthority()]
        let servers =
            [try FaultyServer(seed: seed)]
            + (try authorities.map { try FaultyServer($0.issue(), seed: seed &+ 1) })
        let sessions = try sessions(authorities)
        let watchdog = Task { await complain(about: sessions, at: end + .seconds(40)) }
        defer { watchdog.cancel() }
        var outcomes: [String: Int] = [:]
        await withTaskGroup(of: [String: Int].self) { group in
            for number in 0..<Self.clients {
                let client = RandomClient(
                    sessions: sessions, origins: servers.map(\.server.origin),
                    chance: Chance(seed: seed &+ UInt64(number)))
                group.addTask { await acts(client, until: end) }
            }
            for await acts in group { outcomes.merge(acts, uniquingKeysWith: +) }
        }
        for (number, session) in sessions.enumerated() {
            let left = await session.transfers
            if !left.isEmpty { outcomes["internal: \(left.count) transfers never ended", default: 0] += 1 }
            try await session.shutdown(number == 0 ? .immediate : .graceful(within: .seconds(5)))
        }
        for server in servers { server.server.stop() }
        return (outcomes, servers.flatMap(\.server.violations))
    }

    private func acts(_ client: RandomClient, until end: ContinuousClock.Instant) async -> [String: Int] {
        var client = client
        var outcomes: [String: Int] = [:]
        while ContinuousClock.now < end { outcomes[await client.act(), default: 0] += 1 }
        return outcomes
    }

    /// Makes a plain session, a session with few connections and small buffers, and a session that trusts every server.
    private func sessions(_ authorities: [TestAuthority]) throws -> [Session] {
        let roots = try CustomRoots(pem: authorities.map(\.certificatePEM).joined())
        var configuration = Session.Configuration()
        configuration.timeouts = Timeouts(connect: .seconds(1), idle: .milliseconds(700), total: .seconds(6))
        let patient = Session(configuration, trust: roots)
        let crowded = patient.copy {
            $0.limits.connectionsPerHost = 3
            $0.buffers.highWater = .kibibytes(64)
            $0.buffers.lowWater = .kibibytes(16)
        }
        return [patient, crowded, patient.copy(trust: InsecureTrust(reason: "the soak"))]
    }

    /// Ends the process if a round does not end.
    private func complain(about sessions: [Session], at time: ContinuousClock.Instant) async {
        while ContinuousClock.now < time {
            await elapse(milliseconds: 500)
            if Task.isCancelled { return }
        }
        print("WRONG: transfers hang")
        for session in sessions { for transfer in await session.transfers { print("  \(transfer)") } }
        exit(1)
    }
}
