// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Decides which bytes of one file are requested from the server, and which readers continue.
///
/// The inputs are the positions of the readers and the results of transfers; the outputs are actions. The plan requests
/// no byte that is stored or that a transfer will deliver soon. It is a pure value, which neither waits nor knows time.
struct FetchPlan: Sendable {
    /// The limits of a plan.
    struct Limits: Sendable, Hashable {
        /// The maximum number of transfers at the same time.
        var transfers = 2
        /// How many bytes a transfer may run ahead of the readers that need it.
        var ahead: Int64 = 8 << 20
        /// The distance in bytes up to which a reader waits for a transfer on its way instead of starting another one.
        var join: Int64 = 1 << 20
    }

    /// How the bytes of the file can be requested.
    enum Mode: String, Sendable, Hashable, Codable {
        /// There was no response yet.
        case unknown
        /// Any range can be requested, under a strong validator.
        case ranged
        /// Only the whole file can be requested, but a strong validator shows whether it is the same one.
        case whole
        /// Only the whole file can be requested, and the bytes of two responses cannot be joined.
        case unverified
    }

    enum Action: Hashable, Sendable {
        /// Request the bytes from an offset to an end, or to the end of the file.
        case start(Int, from: Int64, to: Int64?)
        /// Cancel a transfer; its bytes that arrive later may still be reported.
        case stop(Int)
        /// A transfer that was held may continue.
        case resume(Int)
        /// A waiting reader must look again.
        case wake(Int)
        /// A waiting reader gets the error of the transfer that has just ended.
        case fail(Int)
        /// The stored bytes are worthless from now on.
        case discard
    }

    /// The result of a reader's look at the stored bytes.
    enum Step: Hashable, Sendable {
        /// The bytes of a range are stored, and the reader has moved behind them.
        case bytes(Range<Int64>)
        case end
        /// The reader waits for an action that names it.
        case wait
        /// The reader has received bytes of a file that another one has replaced.
        case changed
    }

    /// The next step of a transfer after its bytes are stored.
    enum Next: Hashable, Sendable {
        case more
        /// Wait for `resume`.
        case hold
        /// The transfer has delivered all bytes that are needed.
        case finished
    }

    struct Reader: Sendable, Hashable {
        var position: Int64
        /// The position behind the last byte; `Int64.max` for the end of the file.
        var end: Int64
        /// Whether the reader wants all bytes as soon as possible.
        var isGreedy: Bool
        /// The place in the order of waiting readers; nil while the reader does not wait.
        var waitsSince: UInt64?
        /// Whether the reader has received bytes.
        var hasBegun = false
        /// Whether the reader has all of its bytes, or the file is known to end at or before its position.
        var isAtEnd = false
        /// The generation of the bytes that the reader has received.
        var generation: UInt64
        /// The transfer that will deliver the reader's next missing byte.
        var source: Int?
    }

    struct Transfer: Sendable, Hashable {
        var position: Int64
        /// The position behind the last byte; nil for the end of a file of unknown length.
        var end: Int64?
        /// Whether the head of the response has been accepted.
        var isOpen = false
        var isHeld = false
        /// The number of bytes delivered.
        var delivered: Int64 = 0

        func covers(_ place: Int64) -> Bool { position <= place && place < end ?? .max }
    }

    let limits: Limits
    var mode = Mode.unknown
    /// The length of the file; nil while it is unknown.
    var length: Int64?
    /// The stored bytes.
    var cached = ByteIntervals()
    /// Counts the files that replaced each other.
    var generation: UInt64 = 0
    var readers: [Int: Reader] = [:]
    var transfers: [Int: Transfer] = [:]
    /// Whether a caller waits for the head of the first response.
    var awaitsFacts = false
    /// Whether the cache is closed.
    private(set) var isShutDown = false
    /// Whether the first transfer is kept for the first reader.
    var keepsOpening = false
    var lastID = 0
    var lastWait: UInt64 = 0

    init(_ limits: Limits) { self.limits = limits }

    /// Creates a plan for a file of which some bytes are stored.
    init(_ limits: Limits, mode: Mode, length: Int64?, cached: ByteIntervals) {
        self.init(limits)
        (self.mode, self.length, self.cached) = (mode, length, cached)
    }

    /// Whether all bytes are stored.
    var isComplete: Bool { length.map { cached.count >= $0 } ?? false }

    /// Whether no reader and no transfer needs the plan.
    var isIdle: Bool { readers.isEmpty && transfers.isEmpty && !awaitsFacts }

    // MARK: Readers

    /// Adds a reader.
    ///
    /// - Parameters:
    ///   - start: The position of its first byte.
    ///   - end: The position behind its last byte; nil for the end of the file.
    ///   - isGreedy: Whether the reader wants all bytes as soon as possible.
    /// - Returns: The reader's number.
    mutating func add(from start: Int64, to end: Int64?, isGreedy: Bool = false) -> (Int, [Action]) {
        lastID += 1
        readers[lastID] = Reader(position: start, end: end ?? .max, isGreedy: isGreedy, generation: generation)
        keepsOpening = false
        return (lastID, replan())
    }

    mutating func remove(reader: Int) -> [Action] {
        guard readers.removeValue(forKey: reader) != nil else { return [] }
        return replan()
    }

    /// Returns the reader's next bytes, and moves the reader behind them.
    ///
    /// - Parameter most: The maximum number of bytes.
    mutating func take(_ id: Int, atMost most: Int64) -> (Step, [Action]) {
        guard var reader = readers[id] else { return (.end, []) }
        reader.waitsSince = nil
        if reader.isAtEnd {
            readers[id] = reader
            return (.end, replan())
        }
        if reader.hasBegun, reader.generation != generation {
            readers[id] = reader
            return (.changed, replan())
        }
        reader.generation = generation
        let end = min(reader.end, length ?? .max)
        let start = reader.position
        if start >= end {
            readers[id] = reader
            return (.end, replan())
        }
        if let stored = cached.end(at: start) {
            let part = start..<start + min(min(stored, end) - start, most)
            reader.position = part.upperBound
            reader.hasBegun = true
            reader.isAtEnd = part.upperBound >= end
            readers[id] = reader
            return (.bytes(part), replan())
        }
        lastWait += 1
        reader.waitsSince = lastWait
        readers[id] = reader
        return (.wait, replan())
    }

    /// A reader no longer waits, because its task was cancelled.
    mutating func stopWaiting(_ id: Int) { readers[id]?.waitsSince = nil }

    /// Asks for the head of the response, unless a response has arrived.
    mutating func wantFacts() -> [Action] {
        guard mode == .unknown else { return [] }
        awaitsFacts = true
        keepsOpening = true
        return replan()
    }

    /// The last user of the file has left.
    mutating func release() -> [Action] {
        keepsOpening = false
        awaitsFacts = false
        return replan()
    }

    /// Stops all transfers; no other one starts.
    mutating func shutDown() -> [Action] {
        isShutDown = true
        awaitsFacts = false
        let stopped = transfers.keys.sorted().map { Action.stop($0) }
        transfers = [:]
        for id in readers.keys {
            readers[id]?.source = nil
            readers[id]?.waitsSince = nil
        }
        return stopped
    }

    // MARK: Transfers

    /// The head of a response was accepted: it has the bytes from the transfer's start to `end`.
    mutating func openedPart(_ id: Int, to end: Int64, total: Int64?) -> [Action] {
        guard var transfer = transfers[id] else { return [] }
        transfer.end = min(transfer.end ?? end, end)
        transfer.isOpen = true
        transfers[id] = transfer
        if let total { length = length ?? total }
        return wakeAtEnd() + replan()
    }

    /// The head of a response was accepted: it has the whole file.
    ///
    /// - Parameter mode: How further bytes can be requested.
    mutating func openedWhole(_ id: Int, total: Int64?, mode: Mode) -> [Action] {
        guard var transfer = transfers[id] else { return [] }
        (transfer.position, transfer.end, transfer.isOpen) = (0, total ?? length, true)
        transfers[id] = transfer
        self.mode = mode
        length = length ?? total
        awaitsFacts = false
        var actions: [Action] = []
        if mode != .ranged {
            for other in transfers.keys.sorted() where other != id {
                transfers[other] = nil
                actions.append(.stop(other))
            }
        }
        return actions + wakeAtEnd() + replan()
    }

    /// Ranges of the file cannot be requested, so a transfer of the whole must replace the given one.
    mutating func rangesFailed(_ id: Int) -> [Action] {
        guard transfers.removeValue(forKey: id) != nil else { return [] }
        mode = .whole
        var actions: [Action] = []
        for other in transfers.keys.sorted() {
            transfers[other] = nil
            actions.append(.stop(other))
        }
        return actions + replan()
    }

    /// The length of the file became known without a byte.
    mutating func foundLength(_ id: Int, _ total: Int64) -> [Action] {
        guard transfers.removeValue(forKey: id) != nil else { return [] }
        if let last = cached.ranges.last, last.upperBound > total { return changed(keeping: nil) }
        length = length ?? total
        return wakeAtEnd() + replan()
    }

    /// Another file has replaced this one.
    ///
    /// - Parameter keeping: The transfer that delivers the new file; nil if no transfer does.
    mutating func changed(keeping kept: Int?) -> [Action] {
        var actions: [Action] = [.discard]
        for id in transfers.keys.sorted() where id != kept {
            transfers[id] = nil
            actions.append(.stop(id))
        }
        generation += 1
        (mode, length, cached) = (.unknown, nil, ByteIntervals())
        for (id, reader) in readers.sorted(by: { $0.key < $1.key }) where reader.hasBegun && reader.waitsSince != nil {
            readers[id]?.waitsSince = nil
            actions.append(.wake(id))
        }
        return actions + replan()
    }

    /// Bytes of a transfer are stored.
    ///
    /// - Parameters:
    ///   - range: The bytes, which follow those that the transfer delivered before.
    ///   - generation: The generation of the file that has the bytes; bytes of an older one are ignored.
    mutating func received(_ id: Int, _ range: Range<Int64>, of generation: UInt64) -> (Next, [Action]) {
        guard generation == self.generation else { return (.finished, []) }
        cached.insert(range)
        var actions: [Action] = []
        for (reader, state) in readers.sorted(by: { $0.key < $1.key })
        where state.waitsSince != nil && cached.end(at: state.position) != nil {
            readers[reader]?.waitsSince = nil
            actions.append(.wake(reader))
        }
        guard var transfer = transfers[id] else { return (.finished, actions) }
        transfer.position = range.upperBound
        transfer.delivered += Int64(range.count)
        if let end = transfer.end, transfer.position >= end {
            transfers[id] = nil
            return (.finished, actions + replan())
        }
        transfers[id] = transfer
        actions += replan()
        guard transfers[id] != nil else { return (.finished, actions) }
        return (mayContinue(id) ? .more : .hold, actions)
    }

    /// Returns whether a transfer may read further bytes; if not, `resume` names it later.
    mutating func mayContinue(_ id: Int) -> Bool {
        guard let transfer = transfers[id] else { return true }
        let isHeld = transfer.position >= limit(of: id)
        transfers[id]?.isHeld = isHeld
        return !isHeld
    }

    /// The body of a transfer has ended.
    ///
    /// - Parameter isWhole: Whether the response had all bytes that it announced.
    mutating func ended(_ id: Int, isWhole: Bool) -> [Action] {
        guard let transfer = transfers.removeValue(forKey: id) else { return [] }
        if isWhole, transfer.isOpen, transfer.position >= transfer.end ?? 0 {
            if transfer.end == nil { length = length ?? transfer.position }
            return wakeAtEnd() + replan()
        }
        awaitsFacts = false
        var actions: [Action] = []
        for (reader, state) in readers.sorted(by: { $0.key < $1.key })
        where state.waitsSince != nil && state.source == id {
            readers[reader]?.waitsSince = nil
            actions.append(.fail(reader))
        }
        return actions + replan()
    }

    /// Wakes the readers whose position is the end of the file.
    private mutating func wakeAtEnd() -> [Action] {
        guard let length else { return [] }
        var actions: [Action] = []
        for (reader, state) in readers.sorted(by: { $0.key < $1.key })
        where state.waitsSince != nil && state.position >= length {
            readers[reader]?.waitsSince = nil
            // A file without a validator may be discarded before the reader looks again.
            readers[reader]?.isAtEnd = true
            actions.append(.wake(reader))
        }
        return actions
    }
}
