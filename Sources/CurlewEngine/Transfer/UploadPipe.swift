// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import CurlewSupport

/// A bounded queue between the producer of a request body and libcurl; the loop takes the bytes.
///
/// The producer is started when libcurl first requests bytes. It pushes until it finishes or learns that the bytes are
/// not needed any more. If the queue is full, the producer waits until it is nearly empty, because waking a task is
/// expensive. If libcurl retries, a body that can be replayed is opened again, and the bytes of the old producer are
/// dropped.
package final class UploadPipe: Sendable {
    /// The result of a request of the loop for bytes.
    enum Pulled { case bytes(Int), wait, end, failed(EngineFailure.Reason) }

    /// The access of one producer to the pipe.
    ///
    /// The reference is weak, because the pipe keeps the closure that stops the producer, and this closure usually
    /// keeps the producer.
    package struct Feed: Sendable {
        fileprivate weak let pipe: UploadPipe?
        fileprivate let run: Int
        /// The transform of the producer's bytes, which runs in the producer's own task or thread.
        fileprivate let transform: Lock<any BodyTransform>?
        /// The piece of the body that the producer delivers; nil if it delivers the whole body.
        fileprivate let section: BodySection?

        /// Returns a feed for a producer that delivers and ends only one piece of the body.
        func limited(to section: BodySection) -> Feed {
            Feed(pipe: pipe, run: run, transform: transform, section: section)
        }

        /// Appends bytes and waits while the queue is full.
        ///
        /// Returns false if no more bytes are needed.
        package func push(_ bytes: [UInt8]) async -> Bool {
            guard section?.accept(bytes.count) ?? true else { return false }
            return await pipe?.push(bytes, self) ?? false
        }

        /// Appends bytes without waiting, for a producer that checks `hasCapacity` first.
        ///
        /// Returns false if no more bytes are needed.
        package func offer(_ bytes: [UInt8]) -> Bool {
            guard section?.accept(bytes.count) ?? true else { return false }
            return pipe.map { $0.take(bytes, self) != .closed } ?? false
        }

        /// Whether a producer that uses `offer` may continue.
        package var hasCapacity: Bool {
            guard let pipe else { return false }
            return pipe.state.withLock { $0.run == run && !$0.isClosed && $0.queued < pipe.limit }
        }

        /// Ends the body or its piece, with the producer's error if it failed.
        package func finish(_ error: (any Error)? = nil) {
            if let section { section.finish(error) } else { pipe?.finish(error, self) }
        }
    }

    private enum Appended { case taken, full, closed }

    private struct State {
        var run = 0
        var isOpen = false
        var queue: [[UInt8]] = []
        var offset = 0
        var queued = 0
        /// Whether the queue was full and has not become nearly empty since.
        var hasFilled = false
        /// The bytes from the producer, before any transform.
        var pushed: Int64 = 0
        var handedOver: Int64 = 0
        var hasOverrun = false
        var isFinished = false
        var error: (any Error)?
        var isClosed = false
        var loopWaits = false
        var producer: UnsafeContinuation<Bool, Never>?
        var onClose: (@Sendable () -> Void)?
        weak var reader: (any UploadReader)?
    }

    /// The number of bytes that the producer has declared; nil if it has declared no length.
    package let declared: Int64?
    package let canReplay: Bool
    private let makeTransform: (@Sendable () throws -> any BodyTransform)?
    private let open: @Sendable (Feed) -> (@Sendable () -> Void)?
    private let wantsMore: (@Sendable () -> Void)?
    /// The use of a source that can be read only once, by any pipe.
    private let use: SourceUse?
    private let state = Lock(State())
    private let limit = 512 << 10
    /// The number of queued bytes at which a producer continues after the queue was full.
    private let low = 128 << 10

    /// - Parameters:
    ///   - length: The number of bytes of the producer, if known; more or fewer bytes are an error, and additional ones
    ///     are never sent.
    ///   - open: Starts a producer and returns the closure that stops it. The closure is called once when the transfer
    ///     ends or retries, also after the producer has finished. `open` is called on the loop thread and must not
    ///     block.
    ///   - wantsMore: Called on the loop thread when a full queue has become nearly empty, for producers that use
    ///     `offer`.
    ///   - use: The shared use of a source that can be read only once.
    package init(
        length: Int64?, canReplay: Bool, use: SourceUse? = nil, wantsMore: (@Sendable () -> Void)? = nil,
        transform: (@Sendable () throws -> any BodyTransform)? = nil,
        open: @escaping @Sendable (Feed) -> (@Sendable () -> Void)?
    ) {
        declared = length
        self.canReplay = canReplay
        self.use = use
        makeTransform = transform
        self.open = open
        self.wantsMore = wantsMore
    }

    /// Returns a pipe that sends the body through a transform, created anew for each attempt; it replaces this pipe.
    package func transformed(by make: @escaping @Sendable () throws -> any BodyTransform) -> UploadPipe {
        UploadPipe(
            length: declared, canReplay: canReplay, use: use, wantsMore: wantsMore, transform: make, open: open)
    }

    /// The number of bytes to send, if known.
    package var length: Int64? { makeTransform == nil ? declared : nil }

    deinit { state.withLock { $0.onClose }?() }

    /// Whether the producer delivered more than the declared length; the additional bytes were never sent.
    var hasOverrun: Bool { state.withLock { $0.hasOverrun } }

    /// Sets the reader to notify when bytes arrive after the queue was empty.
    func attach(to reader: any UploadReader) { state.withLock { $0.reader = reader } }

    // MARK: The producer's side

    /// Transforms and appends bytes of the producer; the transform is too expensive to run inside the lock.
    private func take(_ bytes: [UInt8], _ feed: Feed) -> Appended {
        guard let transform = feed.transform, !bytes.isEmpty else {
            return append(bytes, given: bytes.count, run: feed.run)
        }
        let (isWanted, isStarved) = state.withLock { state in
            (state.run == feed.run && !state.isClosed, state.loopWaits && state.queued == 0)
        }
        guard isWanted else { return .closed }
        do {
            // The bytes of a slow source must not stay in the compressor's window while the connection is idle.
            let output = try transform.withLock { try $0.transform(bytes, flush: isStarved) }
            return append(output, given: bytes.count, run: feed.run)
        } catch {
            end(error, run: feed.run)
            return .closed
        }
    }

    private func append(_ bytes: [UInt8], given: Int, run: Int) -> Appended {
        let (result, waiting) = state.withLock { state -> (Appended, (any UploadReader)?) in
            guard state.run == run, !state.isClosed, !state.isFinished else { return (.closed, nil) }
            state.pushed += Int64(given)
            if let declared, state.pushed > declared { state.hasOverrun = true }
            guard !bytes.isEmpty || state.hasOverrun else { return (.taken, nil) }
            if let last = state.queue.indices.last, state.queue[last].count + bytes.count <= 64 << 10 {
                // Small chunks are joined, so that a source of short lines costs no more than one of large blocks.
                state.queue[last] += bytes
            } else {
                state.queue.append(bytes)
            }
            state.queued += bytes.count
            if state.queued >= limit { state.hasFilled = true }
            defer { state.loopWaits = false }
            return (state.queued < limit ? .taken : .full, state.loopWaits ? state.reader : nil)
        }
        waiting?.uploadHasBytes()
        return result
    }

    private func push(_ bytes: [UInt8], _ feed: Feed) async -> Bool {
        let run = feed.run
        switch take(bytes, feed) {
        case .taken: return true
        case .closed: return false
        case .full:
            return await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if state.run != run || state.isClosed { return false }
                    if state.queued < limit { return true }
                    state.producer = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        }
    }

    private func finish(_ error: (any Error)?, _ feed: Feed) {
        guard error == nil, let transform = feed.transform else { return end(error, run: feed.run) }
        do {
            _ = append(try transform.withLock { try $0.finish() }, given: 0, run: feed.run)
            end(nil, run: feed.run)
        } catch {
            end(error, run: feed.run)
        }
    }

    private func end(_ error: (any Error)?, run: Int) {
        let waiting = state.withLock { state -> (any UploadReader)? in
            guard state.run == run, !state.isClosed, !state.isFinished else { return nil }
            state.isFinished = true
            state.error = error
            defer { state.loopWaits = false }
            return state.loopWaits ? state.reader : nil
        }
        waiting?.uploadHasBytes()
    }

    // MARK: The loop's side

    /// Copies queued bytes into libcurl's buffer; the first call starts the producer.
    func pull(into buffer: UnsafeMutableRawPointer, _ capacity: Int) -> Pulled {
        openIfNeeded()
        var producer: UnsafeContinuation<Bool, Never>?
        var wakes = false
        let pulled = state.withLock { state -> Pulled in
            let allowed = length.map { Swift.max(0, $0 - state.handedOver) } ?? Int64.max
            if state.hasOverrun, let declared { return .failed(.bodyTooLong(declared: declared)) }
            if state.isFinished, state.error == nil, makeTransform != nil, let declared, state.pushed < declared {
                return .failed(.bodyTooShort(sent: state.pushed, declared: declared))
            }
            var copied = 0
            while copied < capacity, Int64(copied) < allowed, let first = state.queue.first {
                let room = Swift.min(capacity, Int(clamping: allowed)) - copied
                let part = Swift.min(room, first.count - state.offset)
                first.withUnsafeBytes {
                    if let base = $0.baseAddress { memcpy(buffer + copied, base + state.offset, part) }
                }
                copied += part
                state.offset += part
                if state.offset == first.count {
                    state.queue.removeFirst()
                    state.offset = 0
                }
            }
            state.queued -= copied
            state.handedOver += Int64(copied)
            if state.hasFilled && state.queued <= low {
                state.hasFilled = false
                producer = state.producer
                state.producer = nil
                wakes = true
            }
            if copied > 0 { return .bytes(copied) }
            if let error = state.error { return .failed(.bodySource(error)) }
            if state.isFinished {
                if let length, state.handedOver < length {
                    return .failed(.bodyTooShort(sent: state.handedOver, declared: length))
                }
                return .end
            }
            state.loopWaits = true
            return .wait
        }
        producer?.resume(returning: true)
        if wakes { wantsMore?() }
        return pulled
    }

    private func openIfNeeded() {
        let run = state.withLock { state -> Int? in
            guard !state.isOpen, !state.isClosed else { return nil }
            state.isOpen = true
            return state.run
        }
        guard let run else { return }
        if let use, !use.begin() { return end(SourceUse.isOver, run: run) }
        let stop: (@Sendable () -> Void)?
        do {
            let transform = try makeTransform?()
            stop = open(Feed(pipe: self, run: run, transform: transform.map { Lock($0) }, section: nil))
        } catch {
            return end(error, run: run)
        }
        let tooLate = state.withLock { state -> Bool in
            guard state.run == run, !state.isClosed else { return true }
            state.onClose = stop
            return false
        }
        if tooLate { stop?() }
    }

    /// Starts the body again from its beginning; returns false if it cannot be replayed.
    func rewind() -> Bool {
        let untouched = state.withLock { $0.handedOver == 0 && !$0.isClosed }
        if untouched { return true }
        guard canReplay else { return false }
        let (stop, producer) = state.withLock { state in
            let ended = (state.onClose, state.producer)
            state.run += 1
            state.isOpen = false
            state.queue = []
            state.offset = 0
            state.queued = 0
            state.hasFilled = false
            state.pushed = 0
            state.handedOver = 0
            state.hasOverrun = false
            state.isFinished = false
            state.error = nil
            state.onClose = nil
            state.producer = nil
            return ended
        }
        producer?.resume(returning: false)
        stop?()
        return true
    }

    /// Stops the producer and drops the queued bytes.
    func close() {
        let (stop, producer) = state.withLock { state in
            let ended = (state.onClose, state.producer)
            state.isClosed = true
            state.queue = []
            state.queued = 0
            state.onClose = nil
            state.producer = nil
            state.reader = nil
            return ended
        }
        producer?.resume(returning: false)
        stop?()
    }
}

/// The reader of a pipe: a transfer on its loop, or a reader that does not send the body.
protocol UploadReader: AnyObject, Sendable {
    /// Called on the producer's thread when the pipe has bytes or has ended, after `pull` returned `wait`.
    func uploadHasBytes()
}

/// The state of a source that can be read only once: whether reading has begun.
package final class SourceUse: Sendable {
    private let hasBegun = Lock(false)

    package init() {}

    /// Whether the source cannot be read any more.
    package var isConsumed: Bool { hasBegun.withLock { $0 } }

    /// Returns true for the first caller only.
    func begin() -> Bool {
        hasBegun.withLock { hasBegun in
            defer { hasBegun = true }
            return !hasBegun
        }
    }

    static let isOver = SourceFailure(what: "it was read before, and can be read only once", errno: 0)
}
