// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

extension RunMachine {
    enum Input: Sendable {
        // Commands of the transfer's holders.
        /// Start, and run to the end without any holder if `detaches` is true.
        case start(detaches: Bool)
        case pause
        case resume
        case prioritise(Int)
        case cancel
        /// No holder is left.
        case drop

        // Tasks that wait.
        /// A task waits for the finish; this input also starts the transfer.
        case awaitFinish(Waiter)
        /// The reader of the stream waits for the response, or for an element before the response.
        case awaitResponse(Waiter)
        /// The chain waits for the head or the end of an attempt.
        case awaitHead(UInt64, Waiter)
        /// The chain waits for the end of a body that is collected.
        case awaitEnd(UInt64, Waiter)
        /// A task that waits for the finish or the response was cancelled.
        case leave(UInt64)

        /// The reader of the stream has claimed the body and waits for it; this input also starts the transfer.
        case read

        // Reports of the engine.
        case head(UInt64, isFinal: Bool)
        case end(UInt64, isFinal: Bool)
        /// Something has changed: an informational head, progress, or the state of a download.
        ///
        /// Waiting readers check again.
        case update

        // Results of the chain.
        case sent(Attempt)
        /// The response of the chain, and the attempt whose end ends the transfer; nil if it needs no attempt.
        ///
        /// `hasEnded` is whether the attempt has ended already.
        case respond(Response, Attempt?, hasEnded: Bool)
        case fail(NetworkError)
        /// The time limit of the transfer has passed.
        case expire
    }

    /// Changes to an attempt.
    struct Changes: OptionSet, Sendable {
        let rawValue: UInt8

        static var pause: Changes { Changes(rawValue: 1) }
        static var resume: Changes { Changes(rawValue: 2) }
        static var prioritise: Changes { Changes(rawValue: 4) }
        /// Deliver the body to a reader instead of collecting it.
        static var stream: Changes { Changes(rawValue: 8) }
    }

    /// The effects of an input; fixed fields, because an array would allocate for every request.
    struct Effects: Sendable {
        /// Changes to an attempt.
        ///
        /// The owner makes them under the lock of the machine, so that two threads keep their order.
        var changes: (attempt: Attempt, what: Changes)?
        /// The other attempts to which the changes or the cancellation also apply; usually empty.
        var others: [Attempt] = []
        // The owner carries out the following effects in this order, without the lock.
        var start: Attempt?
        var cancel: Attempt?
        var runsChain = false
        var cancelsChain = false
        /// Whether the transfer has finished, so that its observers get the end.
        var finishes = false
        /// The tasks whose wait is over.
        var resumed = SmallList<Waiter>()
        /// The cancelled task whose wait ends although the transfer continues.
        var withdrawn: Waiter?
    }
}
