// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting
import Testing

@testable import Curlew

@Suite("TransferWitness")
struct TransferWitnessTests {
    private func event(_ kind: TransferEvent.Kind) -> TransferEvent {
        TransferEvent(
            transfer: 1, label: nil, method: .get, url: "http://localhost/", attempt: 1, elapsed: .zero, kind: kind)
    }

    /// The end is told before anyone can see it, so that it must not be asked of what others see.
    @Test func whoComesRightAfterTheEndWasToldDoesNotHearThatItRuns() async {
        let witness = TransferWitness()
        var states: [Bool] = []
        func add() -> EventBuffer<TransferEvent> {
            let buffer = EventBuffer<TransferEvent> { event(.dropped($0)) }
            witness.add(buffer) { hasEnded in
                states.append(hasEnded)
                return event(.state(hasEnded ? .finished : .running))
            }
            return buffer
        }
        let early = add()
        witness.receive(event(.finished(nil)))
        let late = add()
        #expect(states == [false, true])
        for (buffer, expected) in [(early, ["is running", "finished"]), (late, ["is finished", "finished"])] {
            var words: [String] = []
            while let event = await buffer.next() { words.append(event.word) }
            #expect(words == expected)
        }
    }
}
