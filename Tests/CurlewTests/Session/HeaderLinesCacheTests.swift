// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import CurlewTesting
import Testing

@testable import Curlew

@Suite(.timeLimit(.minutes(5)))
struct HeaderLinesCacheTests {
    private func wish(
        _ fields: HeaderFields, withheld: [HeaderName] = [], coding: String? = nil, decodes: Bool = true,
        sends: Bool = false, expects: Bool = false
    ) -> HeaderLinesCache.HeaderLinesInput {
        HeaderLinesCache.HeaderLinesInput(
            fields: fields, withheld: withheld, contentEncoding: coding, decodes: decodes, sends: sends,
            expects: expects)
    }

    @Test func headerLinesAreReusedOnlyForEqualFieldsAndOptions() {
        var known = HeaderLinesCache()
        let lines = HeaderLines([("X-A", "b")])
        known.keep(lines, for: wish(["X-A": "b"], withheld: [.accept]))
        #expect(known[wish(["X-A": "b"], withheld: [.accept])] === lines)
        for other in [
            wish(["x-a": "b"], withheld: [.accept]), wish(["X-A": "B"], withheld: [.accept]), wish(["X-A": "b"]),
            wish(["X-A": "b", "X-B": "c"], withheld: [.accept]), wish([:], withheld: [.accept]),
            wish(["X-A": "b"], withheld: [.accept], coding: "gzip"),
            wish(["X-A": "b"], withheld: [.accept], decodes: false),
            wish(["X-A": "b"], withheld: [.accept], sends: true),
            wish(["X-A": "b"], withheld: [.accept], expects: true),
        ] {
            #expect(known[other] == nil)
        }
    }

    /// Equal strings may have different bytes.
    @Test func unicodeEquivalentValuesAreNotConfused() {
        var known = HeaderLinesCache()
        known.keep(HeaderLines([]), for: wish(["X-A": "\u{212B}"]))
        #expect(known[wish(["X-A": "\u{212B}"])] == nil, "only ASCII is kept")
        known.keep(HeaderLines([]), for: wish(["X-A": "K"]))
        #expect(known[wish(["X-A": "\u{212A}"])] == nil && known[wish(["X-A": "K"])] != nil)
    }

    @Test func oldestHeaderLinesAreEvicted() {
        var known = HeaderLinesCache()
        for number in 0..<6 { known.keep(HeaderLines([]), for: wish(["X": "\(number)"])) }
        #expect((0..<6).map { known[wish(["X": "\($0)"])] != nil } == [false, false, true, true, true, true])
    }

    @Test func requestsWithSimilarFieldsSendTheirOwnValues() async throws {
        let server = try MockServer { _ in .text("x") }
        let session = Session()
        for round in 0..<2 {
            for name in ["X-A", "x-a", "X-B", "X-C", "X-D", "X-E"] as [HeaderName] {
                var request = Request(server.url("/"))
                request.fields[name] = "ü\(round)"
                _ = try await session.data(for: request)
                let last = server.requests.last?.fields.first { $0.value == "ü\(round)" }
                #expect(last?.name == name.rawValue)
            }
        }
    }
}
