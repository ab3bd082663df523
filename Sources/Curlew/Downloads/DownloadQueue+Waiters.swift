// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension DownloadQueue {
    /// A run that waits for a slot, with its position in the order of arrival.
    struct Waiter {
        let ticket: UInt64
        let run: TransferRun
    }

    /// The runs that wait for a slot.
    ///
    /// Runs of normal priority that are not paused are in `line`, where the next one is found without a search. The
    /// other runs are in `others`, which is searched one by one each time.
    struct Waiters {
        private static let normal = Request.Priority.normal.rawValue
        private static let slack = 64

        /// The runs in `line`, by ticket.
        private var plain: [UInt64: TransferRun] = [:]
        /// The tickets of `plain` in the order of arrival, and stale tickets of runs that have left.
        private var line: [UInt64] = []
        /// The number of stale tickets at the start of `line`.
        private var head = 0
        /// The runs with another priority and those that were paused.
        private var others: [Waiter] = []
        /// The tickets by the runs' ids.
        private var tickets: [UInt64: UInt64] = [:]
        private var lastTicket: UInt64 = 0
        /// How often the state of a run was read so far.
        private(set) var visits = 0

        var count: Int { plain.count + others.count }

        /// Adds a run at the end.
        ///
        /// - Returns: The run's ticket.
        mutating func append(_ run: TransferRun) -> UInt64 {
            lastTicket += 1
            tickets[run.id] = lastTicket
            if isPlain(run) {
                plain[lastTicket] = run
                line.append(lastTicket)
            } else {
                others.append(Waiter(ticket: lastTicket, run: run))
            }
            return lastTicket
        }

        private mutating func isPlain(_ run: TransferRun) -> Bool {
            visits += 1
            return !run.isPaused && run.priority == Self.normal
        }

        /// Removes a run that does not want a slot any more; a no-op when it does not wait.
        mutating func remove(_ ticket: UInt64) {
            let run = plain.removeValue(forKey: ticket)
            if let run { return forget(run, ticket) }
            guard let index = others.firstIndex(where: { $0.ticket == ticket }) else { return }
            forget(others.remove(at: index).run, ticket)
        }

        private mutating func forget(_ run: TransferRun, _ ticket: UInt64) {
            if tickets[run.id] == ticket { tickets[run.id] = nil }
        }

        /// Moves a run out of `line` when it was paused or has another priority.
        mutating func standingChanged(_ run: TransferRun) {
            guard let ticket = tickets[run.id], plain[ticket] != nil, !isPlain(run) else { return }
            plain[ticket] = nil
            others.append(Waiter(ticket: ticket, run: run))
        }

        /// Removes and returns the next run; nil when no run waits or all are paused.
        mutating func takeNext(_ order: Order) -> Waiter? {
            var best: (waiter: Waiter, priority: Int)?
            if let (ticket, run) = endOfLine(order) { best = (Waiter(ticket: ticket, run: run), Self.normal) }
            for waiter in others {
                visits += 1
                if waiter.run.isPaused { continue }
                let priority = waiter.run.priority
                guard let known = best else {
                    best = (waiter, priority)
                    continue
                }
                let isFirst = waiter.ticket < known.waiter.ticket
                let isInTurn = priority == known.priority && isFirst == (order == .firstInFirstOut)
                if isInTurn || priority > known.priority { best = (waiter, priority) }
            }
            if let best { remove(best.waiter.ticket) }
            return best?.waiter
        }

        /// Returns the first or last run of `line`, depending on the order, and drops stale tickets.
        private mutating func endOfLine(_ order: Order) -> (UInt64, TransferRun)? {
            switch order {
            case .firstInFirstOut:
                while head < line.count, plain[line[head]] == nil { head += 1 }
            case .lastInFirstOut:
                while head < line.count, plain[line[line.count - 1]] == nil { line.removeLast() }
            }
            if head > line.count / 2 + Self.slack {
                line.removeFirst(head)
                head = 0
            }
            guard head < line.count else { return nil }
            let ticket = order == .firstInFirstOut ? line[head] : line[line.count - 1]
            return plain[ticket].map { (ticket, $0) }
        }
    }
}
