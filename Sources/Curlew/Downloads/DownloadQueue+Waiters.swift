// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension DownloadOptions.Queue {
    /// A run that waits for a slot, with its position in the order of arrival.
    struct Waiter {
        let sequenceNumber: UInt64
        let run: TransferRun
    }

    /// The runs that wait for a slot.
    ///
    /// Runs of normal priority that are not paused are in `arrivals`, where the next one is found without a search. The
    /// other runs are in `others`, which is searched one by one each time.
    struct Waiters {
        private static let normal = Request.Priority.normal.rawValue
        private static let slack = 64

        /// The runs in `arrivals`, by sequence number.
        private var normalPriority: [UInt64: TransferRun] = [:]
        /// The sequence numbers of `normalPriority` in the order of arrival, and stale numbers of runs that have left.
        private var arrivals: [UInt64] = []
        /// The number of stale numbers at the start of `arrivals`.
        private var head = 0
        /// The runs with another priority and those that were paused.
        private var others: [Waiter] = []
        /// The sequence numbers by the runs' ids.
        private var sequenceNumbers: [UInt64: UInt64] = [:]
        private var lastSequenceNumber: UInt64 = 0
        /// The number of times that the state of a run was read so far.
        private(set) var visits = 0

        var count: Int { normalPriority.count + others.count }

        /// Adds a run at the end.
        ///
        /// - Returns: The run's sequence number.
        mutating func append(_ run: TransferRun) -> UInt64 {
            lastSequenceNumber += 1
            sequenceNumbers[run.id] = lastSequenceNumber
            if checkNormal(run) {
                normalPriority[lastSequenceNumber] = run
                arrivals.append(lastSequenceNumber)
            } else {
                others.append(Waiter(sequenceNumber: lastSequenceNumber, run: run))
            }
            return lastSequenceNumber
        }

        private mutating func checkNormal(_ run: TransferRun) -> Bool {
            visits += 1
            return !run.isPaused && run.priority == Self.normal
        }

        /// Removes a run that does not want a slot any more; a no-op when it does not wait.
        mutating func remove(_ sequenceNumber: UInt64) {
            let run = normalPriority.removeValue(forKey: sequenceNumber)
            if let run { return forget(run, sequenceNumber) }
            guard let index = others.firstIndex(where: { $0.sequenceNumber == sequenceNumber }) else { return }
            forget(others.remove(at: index).run, sequenceNumber)
        }

        private mutating func forget(_ run: TransferRun, _ sequenceNumber: UInt64) {
            if sequenceNumbers[run.id] == sequenceNumber { sequenceNumbers[run.id] = nil }
        }

        /// Moves a run out of `arrivals` when it was paused or has another priority.
        mutating func priorityOrPauseChanged(_ run: TransferRun) {
            guard let sequenceNumber = sequenceNumbers[run.id], normalPriority[sequenceNumber] != nil, !checkNormal(run)
            else { return }
            normalPriority[sequenceNumber] = nil
            others.append(Waiter(sequenceNumber: sequenceNumber, run: run))
        }

        /// Removes and returns the next run; nil when no run waits or all are paused.
        mutating func takeNext(_ order: Order) -> Waiter? {
            var best: (waiter: Waiter, priority: Int)?
            if let (sequenceNumber, run) = nextArrival(order) {
                best = (Waiter(sequenceNumber: sequenceNumber, run: run), Self.normal)
            }
            for waiter in others {
                visits += 1
                if waiter.run.isPaused { continue }
                let priority = waiter.run.priority
                guard let known = best else {
                    best = (waiter, priority)
                    continue
                }
                let isFirst = waiter.sequenceNumber < known.waiter.sequenceNumber
                let isInTurn = priority == known.priority && isFirst == (order == .firstInFirstOut)
                if isInTurn || priority > known.priority { best = (waiter, priority) }
            }
            if let best { remove(best.waiter.sequenceNumber) }
            return best?.waiter
        }

        /// Returns the first or last run of `arrivals`, depending on the order, and drops stale numbers.
        private mutating func nextArrival(_ order: Order) -> (UInt64, TransferRun)? {
            switch order {
            case .firstInFirstOut:
                while head < arrivals.count, normalPriority[arrivals[head]] == nil { head += 1 }
            case .lastInFirstOut:
                while head < arrivals.count, normalPriority[arrivals[arrivals.count - 1]] == nil {
                    arrivals.removeLast()
                }
            }
            if head > arrivals.count / 2 + Self.slack {
                arrivals.removeFirst(head)
                head = 0
            }
            guard head < arrivals.count else { return nil }
            let sequenceNumber = order == .firstInFirstOut ? arrivals[head] : arrivals[arrivals.count - 1]
            return normalPriority[sequenceNumber].map { (sequenceNumber, $0) }
        }
    }
}
