// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SimulatedTests {
    @Test func readersGetTheNewestValueOnce() async {
        let number = Simulated(1)
        var (first, second) = (number.values.makeAsyncIterator(), number.values.makeAsyncIterator())
        #expect(await first.next() == 1)
        number.value = 2
        number.value = 1
        number.value = 3
        #expect(await first.next() == 3)
        #expect(await second.next() == 3)
        let waiting = Task {
            var values = number.values.makeAsyncIterator()
            var all: [Int] = []
            while let value = await values.next() { all.append(value) }
            return all
        }
        waiting.cancel()
        #expect(await waiting.value.count <= 1)
        #expect(number.value == 3)
    }

    @Test func monitorShowsTheSimulatedPath() async {
        let network = Simulated(PathMonitor.Path(.unsatisfied, obstacle: .noRoute))
        var paths = network.monitor.makeAsyncIterator()
        #expect(await paths.next() == network.value)
        network.value = PathMonitor.Path(.satisfied, outward: PathMonitor.Path.Interface("wwan0", kind: .cellular))
        #expect(await paths.next()?.reachability == .viaWWAN)
    }

    @Test func pressureHasTheSimulatedLevel() async {
        let memory = Simulated(MemoryPressure.Level.normal)
        var levels = memory.pressure.makeAsyncIterator()
        #expect(await levels.next() == .normal)
        memory.value = .critical
        #expect(await levels.next() == .critical)
    }
}
