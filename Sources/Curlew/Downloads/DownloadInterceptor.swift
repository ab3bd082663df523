// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import FoundationEssentials
internal import Glibc
internal import CurlewSupport

/// The outermost interceptor of a download, which requests the whole file or the rest until the file is complete.
///
/// The interceptor has no reference to the download, but gets it from the transfer: errors hold requests, and requests
/// hold their interceptors, so a reference would form a cycle.
struct DownloadInterceptor: Interceptor {
    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        guard let download = context.run.download else { return try await next(request) }
        var course = DownloadProcess(download, request, context, next)
        return try await course.run()
    }
}

/// The state machine of one download, which runs in one task.
struct DownloadProcess {
    /// How many bytes must arrive before the count of failures is reset.
    static let gain: Int64 = 1 << 20

    /// The retries of a download without a policy, to which the session's budget does not apply.
    private static let defaultRetries = RetryPolicy(limit: 3, budget: nil)

    let download: DownloadRun
    let request: Request
    let context: Interception.Context
    private let next: Interception.Next
    let policy: RetryPolicy
    var schedule: RetrySchedule
    /// Measures the time of the download by the session's clock.
    let stopwatch: RetrySchedule.Stopwatch
    var part: PartialDownload?
    var path: String?
    var resumedFrom: Int64 = 0
    /// The digest of the whole file that the server states.
    var stated: Checksum?
    /// The greatest number of bytes stored so far, and that number at the last failure.
    var highestStored: Int64 = 0
    var storedAtLastFailure: Int64 = 0
    /// Whether a body is being received, so that the session's retries do not apply any more.
    var isReceiving = false
    var hasSlot = false
    /// The additional connections that fetch chunks from the end.
    var fetcher: RangeFetcher?
    /// The response that delivered the latest bytes.
    var latest: IncomingResponse?

    var plan: DownloadPlan { download.plan }

    init(_ download: DownloadRun, _ request: Request, _ context: Interception.Context, _ next: Interception.Next) {
        (self.download, self.request, self.context, self.next) = (download, request, context, next)
        policy = context.run.session.retryPolicy(of: request) ?? DownloadProcess.defaultRetries
        schedule = RetrySchedule(policy)
        stopwatch = RetrySchedule.Stopwatch(context.run.session.retry.clock, from: context.time)
    }

    mutating func run() async throws -> IncomingResponse {
        do {
            try check()
            try await enterQueue()
            await plan.observer?.didStart()
            try await openEarlierPart()
            let response = try await fetch()
            await stopFetcher()
            let file = try await place(response.head)
            await plan.observer?.didEnd(.success(file), isDiscarded: false)
            download.end(.success(file))
            context.run.emit(.fileReady(file.path))
            context.run.notify()
            leaveQueue()
            return response.with(body: [])
        } catch {
            let failure = await failed(overdue(networkError(error)))
            await plan.observer?.didEnd(.failure(failure), isDiscarded: download.isDiscarded)
            download.end(.failure(failure), token: failure.resumeToken)
            leaveQueue()
            throw failure
        }
    }

    // MARK: Before the first request

    private func check() throws(NetworkError) {
        guard request.method == .get || request.method == .post else {
            throw refusal(
                .method, "A download uses GET or POST, not \(request.method.rawValue.escapingControls).")
        }
        guard !request.fields.contains(.range) else {
            throw refusal(
                .field, "The Range field of a download is set by Curlew.",
                hint: "Remove the Range field. To save only one range, save the response of a transfer.")
        }
        try request.check(expecting: [plan.checksum, plan.token?.checksum], computing: plan.options.digest)
    }

    private func refusal(
        _ flaw: NetworkError.RequestFlaw, _ message: String, hint: String? = nil
    ) -> NetworkError {
        NetworkError(invalid: flaw, message, hint: hint, request: request)
    }

    private mutating func openEarlierPart() async throws {
        path = plan.token?.destination ?? plan.destination.path
        if let path { try await request.check(path, plan.overwrite) }
        guard let place = plan.token?.part ?? plan.destination.part(of: source) else { return }
        try await open(place, expecting: plan.token)
        guard let part else { return }
        resumedFrom = part.stored
        if path == nil, let note = part.note {
            let path = plan.destination.path(for: note)
            try await request.check(path, plan.overwrite)
            self.path = path
        }
        if plan.token != nil, part.note == nil, plan.options.failsWhenChanged { throw lost() }
    }

    private func lost() -> NetworkError {
        NetworkError(
            .contentChanged, phase: .preparing, "The part file of the token is missing, or was changed.",
            hint: "Download the whole file, without a token.", request: request)
    }

    /// Opens the part file; with `.uniquify`, it uses a numbered name if another download uses the file.
    private mutating func open(_ place: String, expecting token: ResumeToken? = nil) async throws(DiskFailure) {
        var options = plan.options
        // Parts are defined for GET alone (RFC 9110 §14.2).
        if request.method != .get { options.resumes = false }
        var number = 1
        while part == nil {
            let name = number == 1 ? place : PartialDownload.numbered(place, number)
            do throws(DiskFailure) {
                part = try await PartialDownload(
                    at: name, of: source, expected: token, options: options
                ) { [download] size in download.didWrite(size) }
            } catch {
                number += 1
                guard error.isBusy || error.isForeign, plan.overwrite == .uniquify, token == nil,
                    PartialDownload.numbers ~= number
                else { throw error }
            }
        }
        // After a cancellation, the stored bytes may not have been checked completely.
        if Task.isCancelled { throw DiskFailure("the download stopped reading", place, DiskFailure.cancelled) }
        let checksum = plan.checksum ?? plan.token?.checksum
        part?.expect(checksum)
        for algorithm in algorithms { try await part?.keepDigest(algorithm) }
    }

    /// The URL in the note of the part file.
    var source: String { plan.source ?? plan.token?.url ?? request.url }

    /// The digests that the caller wants or expects.
    private var algorithms: Set<Checksum.Algorithm> {
        Set([plan.checksum?.algorithm, plan.token?.checksum?.algorithm, plan.options.digest].compactMap(\.self))
    }

    // MARK: Requests

    /// Sends requests until the file is complete, and returns the response that delivered its last bytes.
    private mutating func fetch() async throws -> IncomingResponse {
        while true {
            do {
                if let response = try await sendOnce() { return response }
            } catch {
                try await retry(after: networkError(error))
            }
        }
    }

    /// Sends one request; nil when bytes are still missing.
    private mutating func sendOnce() async throws -> IncomingResponse? {
        try await waitWhilePaused()
        if part?.note?.pieces != nil { try await startFetcher() }
        if let fetcher, try await skipFetchedChunks(of: fetcher), let latest { return latest }
        let rangeRequest = RangeRequest(
            offset: part?.note == nil ? 0 : part?.stored ?? 0, validator: part?.note?.validator, total: part?.total)
        if fetcher == nil { download.begin(at: rangeRequest.offset, of: rangeRequest.total) }
        download.willSend(canSendAgain: request.method == .get)
        isReceiving = false
        let asked = asking(rangeRequest)
        let response = try await next(asked)
        switch rangeRequest.answer(response.head, isEncoded: response.attempt?.isDecoded == true) {
        case .error where isWanted(response.head): return try await whole(response, after: rangeRequest)
        case .error: throw await refused(response)
        case .mismatch(let reason):
            await response.discard()
            try await restart(reason)
            return nil
        case .complete:
            try await part?.resume(of: rangeRequest.offset)
            willReceive(response, canResume: true)
            await response.discard()
            return response
        case .whole where asked.wantsIdentity && response.attempt?.isDecoded == true:
            await response.discard()
            throw response.unacceptedCoding
        case .whole where part?.matchesStoredChunks(response) == true:
            willReceive(response, canResume: true)
            return try await receive(response, through: nil)
        case .whole: return try await whole(response, after: rangeRequest)
        case .rest(let last, let total):
            if let limit = request.options.responseLimit, let total, total > limit.bytes { throw tooLarge(limit) }
            try await part?.resume(of: total)
            try await keep(digestOf: response.head)
            if fetcher == nil { download.begin(at: rangeRequest.offset, of: total) }
            willReceive(response, canResume: true)
            try await startFetcher(response.head)
            return try await receive(response, through: last)
        }
    }

    private mutating func whole(_ response: IncomingResponse, after rangeRequest: RangeRequest) async throws
        -> IncomingResponse?
    {
        guard
            let response = try await prepareWhole(
                response, replacesBytes: rangeRequest.offset > 0 || part?.note?.pieces?.isEmpty == false)
        else { return nil }
        return try await receive(response, through: nil)
    }

    /// Returns whether the caller accepts the status of a response although it is not a success; never for 206 and 416.
    private func isWanted(_ head: ResponseHead) -> Bool {
        head.status != .partialContent && head.status != .rangeNotSatisfiable
            && request.options.statuses?.contains(head.status) == true
    }

    private func willReceive(_ response: IncomingResponse, canResume: Bool) {
        guard let part else { return }
        download.willReceive(response, into: part.file, at: part.stored, canResume: canResume)
    }

    private func asking(_ rangeRequest: RangeRequest) -> Request {
        var request = request
        if !request.fields.contains(.acceptEncoding) { request.fields[.acceptEncoding] = "identity" }
        for (name, value) in rangeRequest.fields { request.fields[name] = value }
        return request
    }

    private func refused(_ response: IncomingResponse) async -> NetworkError {
        var body = Data()
        // Cancel only this attempt: one second later, the run may have another current attempt.
        let timeout = Task { [attempt = response.attempt, clock = context.run.session.clock] in
            try await clock.wait(for: .seconds(1))
            attempt?.engine.cancel()
        }
        defer { timeout.cancel() }
        do throws(NetworkError) {
            for try await chunk in response.bytes where body.count < NetworkError.errorBodyLimit {
                body.append(contentsOf: chunk)
                if body.count >= NetworkError.errorBodyLimit { break }
            }
        } catch {}
        return judge.refusal(of: response.head, body: body, request: response.request)
            ?? NetworkError(
                .invalidResponse, phase: .validating,
                "The server sent a partial response (\(response.head.status.code)) to a request for the whole file.",
                request: response.request, response: response.head)
    }

    private var judge: ResponseValidator {
        ResponseValidator(
            statuses: request.options.statuses ?? .success, accepting: request.options.accepting ?? [.any])
    }

    mutating func restart(_ reason: String) async throws {
        if plan.options.failsWhenChanged {
            throw NetworkError(
                .contentChanged, phase: .validating, "The download cannot be resumed: \(reason).",
                hint: "Download the whole file, or leave failsWhenChanged off.", request: request)
        }
        await stopFetcher()
        try await part?.restart()
        resumedFrom = 0
    }

    // MARK: Receiving

    /// Prepares for a body with the whole file; nil when a part file of it was found, so that the rest is requested.
    ///
    /// The method discards the stored bytes only after all checks, so that an error leaves them unchanged.
    ///
    /// - Parameter replacesBytes: Whether bytes are stored that this response replaces.
    private mutating func prepareWhole(_ response: IncomingResponse, replacesBytes: Bool) async throws
        -> IncomingResponse?
    {
        let head = response.head
        if let refusal = judge.refusal(of: head, body: nil, request: response.request) { throw refusal }
        if head.status == .noContent || head.status == .resetContent, request.options.statuses == nil {
            throw NetworkError(
                .unacceptableStatus, phase: .validating, "The server sent nothing to save (\(head.status.code)).",
                hint: "If an empty file is right, set options.statuses.", request: request, response: head)
        }
        // The name may depend on the response, so a changed resource may have another name than the part file's note.
        let path = try chosenPath(for: head)
        self.path = path
        try await request.check(path, plan.overwrite)
        let isAsReceived = response.attempt?.isDecoded != true && response.body.isAsReceived
        let total = isAsReceived ? head.contentLength : nil
        if let limit = request.options.responseLimit, let total, total > limit.bytes { throw tooLarge(limit) }
        if part == nil {
            try await open(path + ".part")
            if let part, let note = part.note, note.validator == ResumeToken.Validator(head) {
                resumedFrom = part.stored
                await response.discard()
                return nil
            }
        }
        if replacesBytes { try await restart("the server sends the whole file") }
        let note = isAsReceived ? self.note(for: head, path, total) : nil
        await stopFetcher()
        let source = source
        try await part?.begin(note, of: source, total: total)
        download.begin(at: 0, of: total)
        stated = nil
        if isAsReceived { try await keep(digestOf: head) }
        willReceive(response, canResume: note != nil)
        try await startFetcher(head)
        return response
    }

    /// Stores the digest of the whole file that the server states, and starts computing it for the check at the end.
    private mutating func keep(digestOf head: ResponseHead) async throws {
        guard let digest = head.representationDigest, digest.algorithm.openSSL.isAvailable else { return }
        try await part?.keepDigest(digest.algorithm)
        stated = digest
    }

    private func chosenPath(for head: ResponseHead) throws -> String {
        do { return try plan.destination.path(for: head) } catch let error as NetworkError { throw error } catch {
            throw NetworkError(
                .destinationFailed, phase: .saving,
                "The closure that chooses the file's path threw \(type(of: error)).",
                cause: error, request: request, response: head)
        }
    }

    private func note(for head: ResponseHead, _ path: String, _ total: Int64?) -> ResumeToken? {
        guard request.method == .get, let validator = ResumeToken.Validator(head), let part else { return nil }
        return ResumeToken(
            url: source, validator: validator, offset: 0, total: total, part: DiskFile.absolute(part.file.path),
            destination: DiskFile.absolute(path), overwrite: plan.overwrite,
            checksum: plan.checksum ?? plan.token?.checksum)
    }

    /// Receives the body of a response; nil when bytes are still missing afterwards.
    ///
    /// - Parameter last: The offset of the last byte of the body; nil when the body is the whole file.
    private mutating func receive(_ response: IncomingResponse, through last: Int64?) async throws -> IncomingResponse?
    {
        let stated = response.attempt?.isDecoded == true ? nil : response.head.contentDigest
        let digest = stated.flatMap { MessageDigest($0.algorithm.openSSL) }
        let start = part?.stored ?? 0
        isReceiving = true
        latest = response
        var isMet = false
        for try await received in response.bytes {
            var chunk = received
            let bytes = (part?.stored ?? 0) + Int64(chunk.count)
            if let last, bytes > last + 1 { throw misbehaved("The body is longer than Content-Range states", response) }
            if let fetcher {
                let count = fetcher.take(chunk.count)
                isMet = count < chunk.count
                if isMet { chunk = chunk.slice(0..<count) }
            }
            digest?.update(chunk)
            let end = (part?.stored ?? 0) + Int64(chunk.count)
            if let limit = request.options.responseLimit, end > limit.bytes { throw tooLarge(limit) }
            try await part?.append(chunk)
            highestStored = max(highestStored, end)
            download.received(chunk.count)
            context.run.notify()
            if let fetcher, let part,
                let pieces = fetcher.takeChangedRanges() ?? (part.isNoteOutdated ? fetcher.storedRanges : nil)
            {
                try await self.part?.recordChunks(pieces)
            }
            // Workers have stored, or are fetching, the bytes that follow.
            if isMet { break }
        }
        try await part?.flush()
        if isMet { return nil }
        if let stated, let digest {
            let found = Checksum(stated.algorithm, digest: digest.finish())
            if found != stated { throw mismatch(stated, found, "the Content-Digest field states") }
        }
        guard let part else { return response }
        if let total = part.total, part.stored == total { return response }
        // The body is the whole file, and its length was unknown until now.
        if part.total == nil, last == nil { return response }
        // A server may send less than was requested; but without any progress the loop would never end.
        if part.stored == start { throw misbehaved("The server sent no missing bytes", response) }
        return nil
    }

    private func misbehaved(_ what: String, _ response: IncomingResponse) -> NetworkError {
        NetworkError(
            .invalidResponse, phase: .receiving, "\(what).", request: request, response: response.head)
    }

    func tooLarge(_ limit: ByteCount) -> NetworkError {
        NetworkError(
            .bodyTooLarge, phase: .receiving, "The file has more than \(limit).",
            hint: "Raise options.responseLimit.", request: request)
    }
}
