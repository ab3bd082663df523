// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewSupport
import FoundationEssentials
import Testing

@testable import Curlew

/// A row of a table of rules: a name that begins with the section of the rule, fields that a server sends, and what the
/// jar has or sends afterwards.
struct CookieCase: Sendable, CustomTestStringConvertible {
    /// The section of RFC 6265bis, and the rule in words.
    let name: String
    /// The URL of the response, unless a field has another.
    var from = "https://www.example.com/"
    /// The values of `Set-Cookie`, in the order of their receipt; an entry may begin with "url | ".
    var set: [String]
    /// The URL of the next request.
    var to = "https://www.example.com/"
    /// The value of its `Cookie` field; nil for no field.
    var sends: String?
    /// The reasons of the refused fields.
    var refused: [Cookie.Refusal.Reason] = []
    /// The time from the receipt to the next request, in seconds.
    var after: TimeInterval = 0

    var testDescription: String { name }

    init(
        _ name: String, from: String = "https://www.example.com/", _ set: String..., to: String? = nil,
        sends: String?, refused: [Cookie.Refusal.Reason] = [], after: TimeInterval = 0
    ) {
        self.name = name
        self.from = from
        self.set = set
        self.to = to ?? from
        self.sends = sends
        self.refused = refused
        self.after = after
    }

    /// The time of the receipt: 2026-01-01 00:00:00 UTC.
    static let start = Date(timeIntervalSince1970: 1_767_225_600)

    func check() throws {
        let clock = TestTime(Self.start)
        let jar = CookieJar(now: { clock.now })
        var reasons: [Cookie.Refusal.Reason] = []
        for entry in set {
            let parts = entry.split(separator: " | ", maxSplits: 1).map(String.init)
            let (url, field) = parts.count == 2 ? (parts[0], parts[1]) : (from, entry)
            do throws(Cookie.Refusal) { try jar.set(field: field, from: url) } catch { reasons.append(error.reason) }
        }
        clock.advance(by: after)
        #expect(reasons == refused)
        #expect(jar.lookUp(to)?.field == sends)
        #expect(jar.cookies(for: to).map(\.pair).joined(separator: "; ") == sends ?? "")
    }
}

/// A time that a test advances.
final class TestTime: Sendable {
    private let current: Lock<Date>

    init(_ start: Date) { current = Lock(start) }

    var now: Date { current.withLock { $0 } }

    func advance(by seconds: TimeInterval) { current.withLock { $0 += seconds } }
}
