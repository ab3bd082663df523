// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension DownloadQueue {
    /// Who waits for a place, and since when.
    struct Waiter {
        let ticket: UInt64
        let run: TransferRun
    }

    /// Those that wait for a place.
    ///
    /// Those of normal priority that are not paused stand in a line, whose next is found without a search, however many they
    /// are; the others are asked one by one, each time.
    struct Waiters {
        private static let normal = Request.Priority.normal.rawValue
        private static let slack = 64

        /// Those in the line.
        private var plain: [UInt64: TransferRun] = [:]
        /// Their tickets in the order in which they came, beside tickets of some that have left.
        private var line: [UInt64] = []
        /// How many at the start of the line have left.
        private var head = 0
        private var others: [Waiter] = []
        /// The tickets by the runs' ids.
        private var tickets: [UInt64: UInt64] = [:]
        private var lastTicket: UInt64 = 0
        /// How many runs were asked for how they stand.
        private(set) var visits = 0

        var count: Int { plain.count + others.count }

        /// Takes one that comes last.
        ///
        /// - Returns: Its ticket.
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

        /// Lets one go that does not want a place any more, if it waits.
        mutating func remove(_ ticket: UInt64) {
            let run = plain.removeValue(forKey: ticket)
            if let run { return forget(run, ticket) }
            guard let index = others.firstIndex(where: { $0.ticket == ticket }) else { return }
            forget(others.remove(at: index).run, ticket)
        }

        private mutating func forget(_ run: TransferRun, _ ticket: UInt64) {
            if tickets[run.id] == ticket { tickets[run.id] = nil }
        }

        /// Takes note that one was paused, goes on, or has another priority.
        mutating func standingChanged(_ run: TransferRun) {
            guard let ticket = tickets[run.id], plain[ticket] != nil, !isPlain(run) else { return }
            plain[ticket] = nil
            others.append(Waiter(ticket: ticket, run: run))
        }

        /// The next, which waits no longer; nil when all are paused.
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

        /// Who stands in the line first, or last.
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
