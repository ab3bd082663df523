// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

extension MediaSource {
    /// How many bytes of disk space a transfer reserves ahead of its position.
    private static let reservation: Int64 = 1 << 20

    /// The request for bytes, which asks for no content coding.
    private func asked(_ question: MediaAnswer.Question) -> Request {
        var asked = request
        asked.fields[.acceptEncoding] = "identity"
        asked.options.decompression = .off
        asked.options.coalesces = false
        asked.tags[OwnStore.self] = true
        for (name, value) in question.fields { asked.fields[name] = value }
        return asked
    }

    /// Runs one transfer to its end.
    func run(_ id: Int, _ question: MediaAnswer.Question, _ generation: UInt64) async {
        let asked = asked(question)
        do {
            let response = try await session.transfer(asked).opened()
            switch MediaAnswer(response.head, to: question) {
            case .part(let end, let total):
                let isWanted = update { state in
                    guard state.plan.generation == generation else { return (false, []) }
                    if let total, state.facts?.length == nil { state.facts?.length = total }
                    return (true, state.plan.openedPart(id, to: end, total: total))
                }
                if isWanted { try await receive(response, id, from: question.from, to: end, generation) }
            case .whole(let facts, let canRange):
                try await openWhole(response, id, facts, canRange: canRange, question, generation)
            case .length(let total):
                update { state in
                    guard state.plan.generation == generation else { return ((), []) }
                    state.facts?.length = total
                    state.hasChanged = true
                    return ((), state.plan.foundLength(id, total))
                }
            case .changed:
                update { state in
                    ((), state.plan.generation == generation ? state.plan.changed(keeping: nil) : [])
                }
            case .unusable(let reason):
                guard question.isPartial else { throw unusable(reason, asked, response.head) }
                update { state in
                    ((), state.plan.generation == generation ? state.plan.rangesFailed(id) : [])
                }
            case .refused: throw refusal(response.head, asked)
            case .encoded:
                throw unusable("a body with a content coding, which the request excludes", asked, response.head)
            }
        } catch {
            fail(id, error as? NetworkError ?? cancelled())
        }
        state.withLock { _ = $0.tasks.removeValue(forKey: id) }
        saveLater()
    }

    private func fail(_ id: Int, _ error: NetworkError) {
        let waiters = update(error) { state in
            let isAwaited = state.plan.awaitsFacts && state.plan.transfers[id] != nil
            let actions = state.plan.ended(id, isWhole: false)
            defer { if isAwaited { state.factsWaiters = [:] } }
            return (isAwaited ? Array(state.factsWaiters.values) : [], actions)
        }
        for waiter in waiters { waiter.resume(returning: error) }
    }

    /// Accepts a response with the whole file: the stored one, or a new one that replaces it.
    private func openWhole(
        _ response: IncomingResponse, _ id: Int, _ facts: MediaFacts, canRange: Bool,
        _ question: MediaAnswer.Question, _ generation: UInt64
    ) async throws {
        if let known = question.facts, known.matches(facts) {
            // The server has ignored the range. Its response has the same bytes, so the stored ones stay.
            let isWanted = update { state in
                guard state.plan.generation == generation else { return (false, []) }
                let mode: FetchPlan.Mode = question.isPartial ? .whole : state.plan.mode
                return (true, state.plan.openedWhole(id, total: facts.length, mode: mode))
            }
            if isWanted { try await receive(response, id, from: 0, to: facts.length ?? known.length, generation) }
            return
        }
        let isWanted = update { state in
            guard state.plan.generation == generation, state.plan.transfers[id] != nil else { return (false, []) }
            return (true, state.facts == nil ? [] : state.plan.changed(keeping: id))
        }
        guard isWanted else { return }
        let (name, file) = try await made(response.request)
        let time = Int64(Date().timeIntervalSince1970)
        typealias Waiters = [UnsafeContinuation<NetworkError?, Never>]
        let (next, waiters) = update { state -> ((UInt64?, Waiters), [FetchPlan.Action]) in
            guard state.facts == nil, state.plan.transfers[id] != nil else { return ((nil, []), []) }
            // A server that sends the discarded file again does not support ranges properly.
            let isAgain = state.discarded.map { $0.matches(facts) } ?? false
            let mode: FetchPlan.Mode =
                facts.validator == nil ? .unverified : canRange && !isAgain ? .ranged : .whole
            (state.facts, state.file, state.name, state.confirmedAt) = (facts, file, name, time)
            state.hasChanged = true
            let actions = state.plan.openedWhole(id, total: facts.length, mode: mode)
            defer { state.factsWaiters = [:] }
            return ((state.plan.generation, Array(state.factsWaiters.values)), actions)
        }
        for waiter in waiters { waiter.resume(returning: nil) }
        guard let next else { return store.discard(key, [name]) }
        try await receive(response, id, from: 0, to: facts.length, next)
    }

    private func made(_ request: Request) async throws(NetworkError) -> (name: String, file: PartialFile) {
        do throws(DiskFailure) { return try await store.create(key) } catch { throw error.networkError(request) }
    }

    /// Stores the body of a response.
    ///
    /// - Parameter end: The position behind the last byte of the response; nil if it is unknown.
    private func receive(
        _ response: IncomingResponse, _ id: Int, from start: Int64, to end: Int64?, _ generation: UInt64
    ) async throws {
        var (position, reserved) = (start, start)
        guard await mayContinue(id) else { return }
        for try await chunk in response.bytes {
            let count = min(Int64(chunk.count), (end ?? .max) - position)
            if count > 0 {
                let bytes = count == chunk.count ? chunk.chunk : chunk.chunk.slice(0..<Int(count))
                if position + count > reserved {
                    // Subtract first: the server states the end, which may be near the largest number.
                    reserved = position + min(max(count, Self.reservation), (end ?? position) - position)
                }
                guard
                    try await write(
                        bytes, at: position, reserving: max(reserved - position, 0), response.request, generation)
                else { return }
                position += count
                let next = received(id, position - count..<position, generation)
                if next == .finished { return }
                if next == .hold { guard await mayContinue(id) else { return } }
            }
            if let end, position >= end { break }
        }
        if let end, position < end { throw shortBody(response) }
        update { state in
            guard state.plan.generation == generation else { return ((), []) }
            let actions = state.plan.ended(id, isWhole: true)
            if state.facts?.length == nil {
                state.facts?.length = state.plan.length
                state.hasChanged = true
            }
            return ((), actions)
        }
    }

    private func received(_ id: Int, _ range: Range<Int64>, _ generation: UInt64) -> FetchPlan.Next {
        let (next, isDue) = update { state in
            let (next, actions) = state.plan.received(id, range, of: generation)
            guard state.plan.generation == generation else { return ((next, false), actions) }
            state.unsaved += Int64(range.count)
            state.hasChanged = true
            let isDue = state.unsaved >= Self.saveInterval
            if isDue { state.unsaved = 0 }
            return ((next, isDue), actions)
        }
        if isDue {
            Task {
                await save()
                reportSize()
            }
        }
        return next
    }

    /// Waits while the transfer is far ahead of its readers; returns false when it is not needed any more.
    private func mayContinue(_ id: Int) async -> Bool {
        while true {
            if Task.isCancelled { return false }
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let isHeld = state.withLock { state in
                    guard state.plan.transfers[id] != nil, !state.plan.mayContinue(id) else { return false }
                    state.held[id] = continuation
                    return true
                }
                if !isHeld { continuation.resume() }
            }
            let (isKnown, mayContinue) = state.withLock { state in
                (state.plan.transfers[id] != nil, state.plan.mayContinue(id))
            }
            if !isKnown { return false }
            if mayContinue { return true }
        }
    }

    /// Writes bytes; a full disk loses the least recently used files first.
    ///
    /// - Returns: Whether the bytes still belong to the current file.
    private func write(
        _ bytes: Chunk, at position: Int64, reserving count: Int64, _ request: Request, _ generation: UInt64
    ) async throws(NetworkError) -> Bool {
        guard let file = state.withLock({ $0.plan.generation == generation ? $0.file : nil }) else { return false }
        for isRetry in [false, true] {
            do throws(DiskFailure) {
                try await DiskThread.media.result(at: store.jobPath(key)) { () throws(DiskFailure) in
                    try file.reserve(from: position, isRetry ? Int64(bytes.count) : count)
                    try file.write(bytes, at: position)
                }
                return true
            } catch {
                if !isRetry, error.isFull, store.evict(for: max(count, Int64(bytes.count))) {
                    await store.waitForJobs()
                    continue
                }
                throw error.networkError(request)
            }
        }
        return true
    }

    // MARK: Errors

    private func refusal(_ head: ResponseHead, _ request: Request) -> NetworkError {
        let phrase = head.status.reasonPhrase.map { "\($0) (\(head.status.code))" } ?? "status \(head.status.code)"
        return NetworkError(
            .unacceptableStatus, phase: .validating, "Request failed: \(phrase).", request: request, response: head)
    }

    private func unusable(_ reason: String, _ request: Request, _ head: ResponseHead) -> NetworkError {
        NetworkError(
            .invalidResponse, phase: .receiving, "The server sent \(reason).", request: request, response: head)
    }

    private func shortBody(_ response: IncomingResponse) -> NetworkError {
        NetworkError(
            .connectionLost, phase: .receiving, "The response ended before all of its bytes had arrived.",
            request: response.request, response: response.head)
    }
}

extension DiskFailure {
    /// Returns the error of a cache whose disk failed.
    func networkError(_ request: Request?) -> NetworkError {
        let text = description.prefix(1).uppercased() + description.dropFirst()
        return NetworkError(
            isFull ? .resourceExhausted : .cacheFailed, phase: .saving, "\(text).",
            hint: isFull
                ? "Free some space, or lower the limit of the media cache."
                : "The directory and its files must belong to this user only, and must be writable.",
            cause: self, request: request)
    }
}
