// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Curlew

/// The member of `Cache-Status` (RFC 9211), as a table.
struct CacheReportTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let report: HTTPCache.Report
        let text: String

        init(_ name: String, _ report: HTTPCache.Report, _ text: String) {
            (self.name, self.report, self.text) = (name, report, text)
        }

        var testDescription: String { name }
    }

    @Test(arguments: rows) func reportIsDescribed(_ row: Row) {
        #expect(row.report.description == row.text)
        #expect(StructuredField.list(row.text)?.count == 1)
    }

    /// RFC 9211 §2.3 to §2.6.
    @Test func validationIsDescribed() {
        var report = HTTPCache.Report(.stale)
        report.forwardedStatus = .notModified
        report.isStored = true
        report.timeToLive = .milliseconds(60_900)
        #expect(report.description == "curlew; fwd=stale; fwd-status=304; stored; ttl=60")
        #expect(!report.isHit && report.forwarding == .stale)
    }

    @Test func storedBodyIsFromTheCache() {
        #expect(HTTPCache.Report(hit: nil).isFromCache)
        #expect(HTTPCache.Report(.stale, reason: .error).isFromCache)
        #expect(!HTTPCache.Report(.stale).isFromCache && !HTTPCache.Report(.miss, reason: .refused).isFromCache)
        var report = HTTPCache.Report(.partial)
        report.forwardedStatus = .partialContent
        #expect(!report.isFromCache)
        report.forwardedStatus = .notModified
        #expect(report.isFromCache && !report.isHit)
    }

    /// RFC 9211 §2.5.
    @Test func collapsedRequestIsDescribed() {
        var report = HTTPCache.Report(.uriMiss)
        report.isCollapsed = true
        #expect(report.description == "curlew; fwd=uri-miss; collapsed")
    }

    /// RFC 9211 §2.2 and §2.8: both are tokens.
    @Test func allValuesAreTokens() {
        for forwarding in HTTPCache.Report.Forwarding.allCases {
            #expect(StructuredField.list(forwarding.rawValue)?.first?.bare == .token(forwarding.rawValue))
        }
        for reason in HTTPCache.Report.Reason.allCases {
            #expect(StructuredField.list(reason.rawValue)?.first?.bare == .token(reason.rawValue))
        }
    }

    static let rows: [Row] = [
        Row("RFC 9211 §2.1 a hit", .init(hit: nil), "curlew; hit"),
        Row("RFC 9211 §2.6 a hit with its rest", .init(hit: .seconds(581)), "curlew; hit; ttl=581"),
        Row(
            "RFC 9211 §2.6 a stale hit", .init(hit: .seconds(-30), reason: .acceptedStale),
            "curlew; hit; ttl=-30; detail=accepted-stale"),
        Row("RFC 9211 §2.6 a rest of zero", .init(hit: .zero), "curlew; hit; ttl=0"),
        Row("RFC 9211 §2.2 bypass", .init(.bypass, reason: .download), "curlew; fwd=bypass; detail=download"),
        Row("RFC 9211 §2.2 method", .init(.method), "curlew; fwd=method"),
        Row("RFC 9211 §2.2 uri-miss", .init(.uriMiss), "curlew; fwd=uri-miss"),
        Row("RFC 9211 §2.2 vary-miss", .init(.varyMiss), "curlew; fwd=vary-miss"),
        Row("RFC 9211 §2.2 miss", .init(.miss, reason: .noCache), "curlew; fwd=miss; detail=no-cache"),
        Row(
            "RFC 9211 §2.2 request", .init(.request, reason: .requestNoStore),
            "curlew; fwd=request; detail=request-no-store"),
        Row("RFC 9211 §2.2 stale", .init(.stale, reason: .noValidator), "curlew; fwd=stale; detail=no-validator"),
        Row("RFC 9211 §2.2 partial", .init(.partial), "curlew; fwd=partial"),
    ]
}
