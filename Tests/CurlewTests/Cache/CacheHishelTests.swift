// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

@testable import Curlew

/// Decisions about random responses and requests, compared with those of hishel, an HTTP cache for Python.
///
/// hishel's states are pure functions like Curlew's rules, so nothing is sent. Where hishel differs, its verdict about
/// the translated scenario must be Curlew's verdict about the original: see `HishelDifference`.
@Suite(.enabledIfInstalled(.hishel), .peer(.hishel), .timeLimit(.minutes(5)))
struct CacheHishelTests {
    /// A scenario as hishel gets it: one line of JSON.
    private struct Question: Encodable {
        var shared: Bool
        var stale: Bool
        var status: Int
        var response: [[String]]
        var first: [[String]]
        var later: [[String]]
        var now: Double

        init(_ scenario: HishelScenario) {
            (shared, stale) = (scenario.isShared, scenario.acceptsStale)
            (status, response) = (scenario.status, scenario.response)
            (first, later) = (scenario.first.fields, scenario.later.fields)
            now = CacheCase.start + Double(scenario.elapsed)
        }
    }

    private struct Answer: Decodable {
        var fields: [String]?
        var use: HishelVerdict.Use?
        var age: Int?
        var conditions: [String: String]?

        var verdict: HishelVerdict {
            guard let fields else { return .refused }
            return HishelVerdict(
                fields: Set(fields).subtracting(HishelVerdict.translatedFields), use: use, age: age ?? 0,
                conditions: conditions ?? [:])
        }
    }

    /// A script that asks hishel's states about each line.
    private static let script = #"""
        import json, sys, time
        from uuid import uuid4
        from hishel import CacheMiss, Entry, FromCache, Headers, IdleClient, Request, Response, StoreAndUse

        url = "https://example.com/a"

        def judge(case):
            # hishel asks for the current time itself.
            time.time = lambda: case["now"]
            first = Request("GET", url, Headers(dict(case["first"])))
            later = Request("GET", url, Headers(dict(case["later"])))
            received = Response(case["status"], Headers(dict(case["response"])))
            stored = CacheMiss(request=first, options={"shared": case["shared"]}).next(received)
            if not isinstance(stored, StoreAndUse): return {"fields": None}
            entry = Entry(uuid4(), first, stored.response)
            answer = {"fields": sorted(stored.response.headers), "use": "asked", "age": 0, "conditions": {}}
            for use, stale in ("fresh", False), ("stale", case["stale"]):
                state = IdleClient(options={"shared": case["shared"], "allow_stale": stale}).next(later, [entry])
                if isinstance(state, FromCache):
                    return answer | {"use": use, "age": int(state.entry.response.headers["age"])}
            for name in "if-none-match", "if-modified-since":
                if name in state.request.headers: answer["conditions"][name] = state.request.headers[name]
            return answer

        for line in sys.stdin: print(json.dumps(judge(json.loads(line))))

        """#

    /// Returns hishel's verdicts; one process judges all scenarios.
    private func verdicts(on scenarios: [HishelScenario]) async throws -> [HishelVerdict] {
        let encoder = JSONEncoder()
        var lines = Data()
        for scenario in scenarios { lines += try encoder.encode(Question(scenario)) + Data("\n".utf8) }
        let (script, input) = (try ScratchFile(Self.script.utf8), try ScratchFile(lines))
        defer { withExtendedLifetime((script, input)) {} }
        let output = try await ShellCommand.output(
            "PYTHONPATH='\(Peer.pythonFolder)' /usr/bin/python3 -B '\(script.path)' < '\(input.path)'")
        let decoder = JSONDecoder()
        let answers = try output.split(separator: UInt8(ascii: "\n")).map { line in
            try decoder.decode(Answer.self, from: Data(line)).verdict
        }
        try #require(answers.count == scenarios.count)
        return answers
    }

    @Test func randomScenariosAreJudgedEqually() async throws {
        var chance = SeededChance(9111)
        let translations = (0..<6000).map { _ in HishelTranslation(.random(&chance)) }
        let answers = try await verdicts(on: translations.flatMap { [$0.original, $0.scenario] })
        var (differing, unexplained) = (0, 0)
        var (uses, seen) = (Set<HishelVerdict.Use?>(), Set<HishelDifference>())
        for (index, translation) in translations.enumerated() {
            let verdict = translation.original.verdictOfCurlew()
            let translated = translation.adjusted(answers[2 * index + 1])
            uses.insert(verdict.use)
            if verdict != answers[2 * index] {
                differing += 1
                seen.formUnion(translation.differences)
            }
            if verdict == translated { continue }
            unexplained += 1
            guard unexplained <= 5 else { continue }
            Issue.record(
                """
                \(translation.original)
                Curlew: \(verdict)
                hishel: \(answers[2 * index])
                hishel after \(translation.differences.map(\.rawValue)): \(translated)
                """)
        }
        #expect(unexplained == 0)
        // The scenarios show every difference, but hishel is a judge only if it agrees about most of them.
        #expect((1500...3500).contains(differing))
        #expect(uses == [nil, .fresh, .stale, .asked, .unavailable])
        #expect(seen == Set(HishelDifference.allCases))
    }

    @Test func eachDifferenceHasAnExample() async throws {
        let translations = HishelDifference.allCases.map { HishelTranslation($0.example) }
        let answers = try await verdicts(on: translations.flatMap { [$0.original, $0.scenario] })
        for (index, difference) in HishelDifference.allCases.enumerated() {
            let (translation, verdict) = (translations[index], translations[index].original.verdictOfCurlew())
            #expect(translation.differences == [difference])
            #expect(verdict != answers[2 * index], "hishel does not differ: \(difference)")
            #expect(verdict == translation.adjusted(answers[2 * index + 1]), "\(difference)")
        }
    }
}
