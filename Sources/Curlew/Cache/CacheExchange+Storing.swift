// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension CacheExchange {
    // MARK: Received responses

    /// Returns a response of the server, which is stored while it is read if the rules allow it.
    func received(
        _ response: IncomingResponse, _ report: HTTPCache.Report, _ requestedAt: Date
    ) async throws -> IncomingResponse {
        let receivedAt = cache.time
        var report = report
        if lookUp.method == .head {
            await update(by: response.head, requestedAt, receivedAt)
            return reported(response, report)
        }
        if response.head.status == .notModified {
            // The response to the request's own preconditions.
            await update(by: response.head, requestedAt, receivedAt)
            return reported(response, report)
        }
        var proposal = HTTPCache.Proposal(request: response.request, head: response.head)
        if let willStore = cache.options.willStore, await !willStore(&proposal) {
            report.reason = .refused
            return reported(response, report)
        }
        let sent = lookUp.sent(response.request)
        let credentials = settings.credentials(
            of: request, lookUp, sent: response.request, isShared: rules.isShared)
        if let reason = rules.refusal(of: proposal.head, to: sent, credentials) {
            report.reason = reason
            return reported(response, report)
        }
        if proposal.mapBytes == nil, let length = proposal.head.contentLength, length > cache.maximumBodySize {
            report.reason = .tooLarge
            return reported(response, report)
        }
        let fields = rules.storedFields(proposal.head.fields)
        var entry = HTTPCache.Entry(
            key: key(for: fields), url: lookUp.url, head: proposal.head, fields: fields,
            requestFields: CacheRules.requestFields(of: sent, for: fields),
            credentials: rules.requiredCredentials(credentials, fields), requestedAt: requestedAt,
            receivedAt: receivedAt, tags: proposal.tags)
        entry.isDecoded = response.attempt?.isDecoded == true
        if proposal.mapBytes != nil { entry.fields.remove(.contentLength) }
        // A server does not know the bytes of a changed body.
        if proposal.mapBytes != nil || !response.body.isAsReceived { entry.fields.remove(.useAsDictionary) }
        return try await stored(
            response, report, entry, sent, expecting: entry.head.contentLength, by: proposal.mapBytes)
    }

    private func key(for fields: HeaderFields) -> String {
        let answersOthers = cache.options.usesNoVarySearch && NoVarySearch(of: fields) != nil
        return answersOthers ? CacheKey.ofSearch(lookUp.url) : lookUp.url
    }

    /// Returns a response that is stored while it is read.
    func stored(
        _ response: IncomingResponse, _ report: HTTPCache.Report, _ entry: HTTPCache.Entry, _ sent: CacheRequest,
        expecting size: Int64?, by map: HTTPCache.Mapping? = nil
    ) async throws -> IncomingResponse {
        var report = report
        guard let writer = await cache.attempt({ try await cache.store.writer(for: entry, expecting: size) }) else {
            report.reason = .storeFailed
            return reported(response, report)
        }
        report.isStored = true
        report.timeToLive = rules.freshness(of: entry, at: cache.time).timeToLive
        let completeSize =
            map == nil && !entry.isDecoded ? CacheRules.completeSize(of: entry.head) : nil
        let recorder = BodyRecorder(
            entry, to: writer, in: cache, after: removals, completeSize: completeSize, by: map
        ) { entry in
            await replaced(by: entry, sent)
        }
        let source = RecordedSource(response, recorder)
        let body = response.body.passing(through: source)
        let recorded = IncomingResponse(response.head, body, response.request, response.attempt)
        // A redirect that is followed is not read.
        guard response.head.status.redirects, let size, size <= Self.largestRedirect else {
            return reported(recorded, report)
        }
        let (data, trailers) = try await body.whole(upTo: ByteCount(Self.largestRedirect), of: request)
        let collected = IncomingBody(data, trailers: trailers)
        return reported(IncomingResponse(response.head, collected, response.request, response.attempt), report)
    }

    /// The maximum size of a redirect's body that is read only to store it.
    private static let largestRedirect: Int64 = 64 << 10

    /// The maximum number of responses for one key, which differ in the fields of their requests.
    private static let maximumVariants = 64

    /// Returns the entries that a new one replaces: those for the same requests, and the oldest ones if there are too
    /// many.
    private func replaced(by entry: HTTPCache.Entry, _ sent: CacheRequest) async -> [HTTPCache.Entry] {
        let stored = await cache.attempt { try await cache.store.entries(.key(entry.key)) } ?? []
        let isEqual = { (other: HTTPCache.Entry) in
            other.url == entry.url && other.credentials == entry.credentials
                && (rules.matches(other, sent) || rules.matches(other, lookUp))
        }
        var others = stored.filter { !isEqual($0) }
        let equal = stored.filter(isEqual)
        if others.count < Self.maximumVariants { return equal }
        others.sort { $0.receivedAt > $1.receivedAt }
        return equal + others[(Self.maximumVariants - 1)...]
    }

    /// Returns an updated entry as it is to be stored; nil if the `willStore` closure or the new fields forbid that.
    func revised(_ updated: HTTPCache.Entry) async -> HTTPCache.Entry? {
        var updated = updated
        if let willStore = cache.options.willStore {
            var proposal = HTTPCache.Proposal(request: request, head: updated.head, tags: updated.tags)
            guard await willStore(&proposal) else { return nil }
            updated.fields = rules.storedFields(proposal.head.fields)
            updated.tags = proposal.tags
        }
        // The new fields may forbid to store the response, or to use it for others.
        if rules.refusal(of: updated.head, to: lookUp, lookUp.credentials) != nil { return nil }
        updated.credentials = rules.requiredCredentials(lookUp.credentials, updated.fields)
        return updated
    }

    /// Replaces a stored entry by the updated one, or removes it.
    func replace(_ entry: HTTPCache.Entry, by revised: HTTPCache.Entry?) async {
        guard let revised else {
            await cache.remove([entry])
            return
        }
        _ = await cache.attempt { try await cache.store.update(revised) }
    }

    /// Updates the stored responses to GET by a response to HEAD or to the request's own preconditions
    /// (RFC 9111 §4.3.4, §4.3.5).
    private func update(by head: ResponseHead, _ requestedAt: Date, _ receivedAt: Date) async {
        let isConfirmation = head.status == .notModified
        guard isConfirmation || head.status == .ok else { return }
        for entry in await cache.entries(for: lookUp) where entry.status == .ok && rules.matches(entry, lookUp) {
            if isConfirmation {
                guard let tag = head[.etag], tag == entry.fields[.etag] else { continue }
            } else if !CacheRules.describes(head, entry) {
                await cache.remove([entry])
                continue
            }
            let updated = rules.updated(
                entry, by: head, to: lookUp, requestedAt: requestedAt, receivedAt: receivedAt)
            await replace(updated, by: revised(updated))
        }
    }

    // MARK: Other methods

    /// Sends a request whose response is not stored, and removes what it invalidates (RFC 9111 §4.4).
    func changing() async throws -> IncomingResponse {
        if lookUp.isOffline { return unavailable(.init(.method, reason: .onlyIfCached)) }
        let response = try await next(request)
        for invalidation in CacheRules.invalidated(by: response.head, to: lookUp) {
            let removed: Int
            do throws(NetworkError) {
                switch invalidation {
                case .url(let url): removed = try await cache.remove(url: url)
                case .group(let group, let origin): removed = try await cache.remove(group: group, of: origin)
                }
                cache.record { $0.invalidations += removed }
            } catch {
                cache.count(\.failures)
            }
        }
        return reported(response, .init(.method))
    }
}
