// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// A row of the table of cache rules: a stored response, a later request, and what the cache does with it.
///
/// Times are seconds. The first response is received at `CacheCase.start`, without delay.
struct CacheCase: Sendable, CustomTestStringConvertible {
    /// The way in which the cache handles the later request.
    enum Result: Sendable, Hashable {
        /// The response was not stored, for this reason.
        case notStored(HTTPCache.Report.Reason)
        /// The stored response is used; the reason is nil for a fresh one.
        case hit(HTTPCache.Report.Reason? = nil)
        /// The stored response is used, and validated in the background.
        case refresh
        /// The stored response is validated.
        case validate(HTTPCache.Report.Forwarding)
        /// The rest of the stored start is requested.
        case complete
        /// The request is sent as it is.
        case forward(HTTPCache.Report.Forwarding)
        /// The request must not be sent, so the response is a 504.
        case unavailable
    }

    /// The section of the rule, and the rule in words.
    let name: String
    var isShared = false
    /// The names of targeted fields.
    var targeted: [HeaderName] = []
    /// The request that the stored response answered.
    var first: HeaderFields = [:]
    var status: Status = 200
    /// The fields of the stored response; `Date` is the time of its receipt unless it is given.
    var response: HeaderFields
    var credentials = CacheRules.Credentials.none
    /// For a part: the stored bytes and the whole size.
    var part: (size: Int64, of: Int64)?
    /// The time from the receipt to the later request.
    var age: Double = 0
    /// The time that the first response took.
    var delay: Double = 0
    var method: Curlew.Method = .get
    /// The fields of the later request.
    var request: HeaderFields = [:]
    var policy = Request.CachePolicy.standard
    /// The credentials of the later request.
    var with: String?
    var result: Result

    var testDescription: String { name }

    /// 2026-01-01 00:00:00 UTC, a Thursday.
    static let start: Double = 1_767_225_600

    /// Returns an HTTP date some seconds after the start, such as "Thu, 01 Jan 2026 00:00:10 GMT" for 10.
    static func date(_ offset: Int64) -> String { HTTPDate(seconds: Int64(start) + offset).description }

    static let url = "https://example.com/a"

    init(
        _ name: String, shared: Bool = false, targeted: [HeaderName] = [], first: HeaderFields = [:],
        status: Status = 200, _ response: HeaderFields, credentials: CacheRules.Credentials = .none,
        part: (size: Int64, of: Int64)? = nil, age: Double = 0, delay: Double = 0, method: Curlew.Method = .get,
        request: HeaderFields = [:], policy: Request.CachePolicy = .standard, with: String? = nil, _ result: Result
    ) {
        self.name = name
        isShared = shared
        (self.targeted, self.first, self.status, self.response) = (targeted, first, status, response)
        (self.credentials, self.part, self.age, self.delay) = (credentials, part, age, delay)
        (self.method, self.request, self.policy, self.with, self.result) = (method, request, policy, with, result)
    }

    var rules: CacheRules { CacheRules(isShared: isShared, targetedFields: targeted) }

    func check() {
        var head = ResponseHead(status: status, fields: response, url: Self.url)
        if !response.contains(.date) {
            head = head.with(fields: ([.date: Self.date(0)] as HeaderFields).merging(response))
        }
        let asked = CacheRequest(.get, Self.url, fields: first)
        if let reason = rules.refusal(of: head, to: asked, credentials) { return #expect(result == .notStored(reason)) }
        let fields = rules.storedFields(head.fields)
        let received = Date(timeIntervalSince1970: Self.start)
        var entry = HTTPCache.Entry(
            key: Self.url, url: Self.url, head: head, fields: fields,
            requestFields: CacheRules.requestFields(of: asked, for: fields),
            credentials: rules.requiredCredentials(credentials, fields),
            requestedAt: received.addingTimeInterval(-delay),
            receivedAt: received)
        if let part { (entry.size, entry.completeSize) = (part.size, part.of) }
        let later = CacheRequest(
            method, Self.url, fields: request, policy: policy,
            credentials: with.map { .known($0) } ?? .none)
        let decision = rules.decide(later, [entry], at: received.addingTimeInterval(age))
        #expect(Self.result(of: decision) == result)
    }

    static func result(of decision: CacheDecision) -> Result {
        switch decision {
        case .serve(_, let report): .hit(report.reason)
        case .refresh: .refresh
        case .validate(_, let report): .validate(report.forwarding ?? .bypass)
        case .complete: .complete
        case .forward(let report, _): .forward(report.forwarding ?? .bypass)
        case .unavailable: .unavailable
        }
    }
}
