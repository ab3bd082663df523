// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

@testable import Curlew

/// A response, the request that it answered, and a later request, as Curlew and hishel judge them.
///
/// Times are seconds after the receipt of the response.
struct HishelScenario: Sendable {
    /// The value of a field with a date.
    enum Moment: Sendable, Hashable {
        case at(Int)
        case invalid(String)

        var text: String {
            switch self {
            case .at(let offset): CacheCase.date(Int64(offset))
            case .invalid(let text): text
            }
        }

        var offset: Int? { if case .at(let offset) = self { offset } else { nil } }
    }

    /// The fields of a request.
    struct Asking: Sendable {
        var control: [String] = []
        var isReload = false
        var language: String?
        var secret: String?

        var fields: [[String]] {
            var fields: [[String]] = []
            if !control.isEmpty { fields.append(["Cache-Control", control.joined(separator: ", ")]) }
            if isReload { fields.append(["Pragma", "no-cache"]) }
            if let language { fields.append(["Accept-Language", language]) }
            if let secret { fields.append(["Authorization", secret]) }
            return fields
        }
    }

    var isShared = false
    /// Whether the cache uses stale responses where the server allows it.
    var acceptsStale = false
    var status = 200
    /// The members of the `Cache-Control` of the response.
    var control = ["max-age=100"]
    var expires: Moment?
    var date: Moment? = .at(0)
    var age: String?
    var tag: String? = "\"1\""
    var changed: Int?
    var vary: String?
    var setsCookie = false
    /// Whether `Connection` lists the field X-Other.
    var hasConnection = false
    /// The time that the response took.
    var delay = 0
    /// The time to the later request.
    var elapsed = 10
    var first = Asking()
    var later = Asking()

    var response: [[String]] {
        var fields = [["X-Own", "1"], ["X-Other", "2"]]
        func add(_ name: String, _ value: String?) { if let value { fields.append([name, value]) } }
        add("Cache-Control", control.isEmpty ? nil : control.joined(separator: ", "))
        add("Expires", expires?.text)
        add("Date", date?.text)
        add("Age", age)
        add("ETag", tag)
        add("Last-Modified", changed.map { Moment.at($0).text })
        add("Vary", vary)
        add("Set-Cookie", setsCookie ? "a=b" : nil)
        add("Connection", hasConnection ? "X-Other, close" : nil)
        return fields
    }
}

/// The decision of a cache about a scenario.
struct HishelVerdict: Sendable, Hashable {
    enum Use: String, Sendable, Hashable, Decodable {
        /// The stored response is used.
        case fresh, stale
        /// The request is sent, perhaps with preconditions.
        case asked
        /// The request must not be sent.
        case unavailable
    }

    /// The names of the stored fields in lower case, without those that scenarios are translated with; nil if the
    /// response is not stored.
    var fields: Set<String>?
    var use: Use?
    /// The `Age` of the used response.
    var age = 0
    /// The preconditions of the sent request, by names in lower case.
    var conditions: [String: String] = [:]

    static let refused = HishelVerdict()

    static let translatedFields: Set<String> = ["age", "cache-control", "date", "expires"]
}

extension HishelScenario {
    private func fields(_ pairs: [[String]]) -> HeaderFields {
        HeaderFields(pairs.map { HeaderFields.Field(name: HeaderName($0[0]), value: $0[1]) })
    }

    /// The verdict of Curlew's rules.
    func verdictOfCurlew() -> HishelVerdict {
        let rules = CacheRules(isShared: isShared)
        let head = ResponseHead(status: Status(status), fields: fields(response), url: CacheCase.url)
        let credentials: CacheRules.Credentials = first.secret.map { .known($0) } ?? .none
        let asked = CacheRequest(.get, CacheCase.url, fields: fields(first.fields), credentials: credentials)
        if rules.refusal(of: head, to: asked, credentials) != nil { return .refused }
        let received = Date(timeIntervalSince1970: CacheCase.start)
        let stored = rules.storedFields(head.fields)
        let entry = HTTPCache.Entry(
            key: CacheCase.url, url: CacheCase.url, head: head, fields: stored,
            requestFields: CacheRules.requestFields(of: asked, for: stored),
            credentials: rules.requiredCredentials(credentials, stored),
            requestedAt: received.addingTimeInterval(-Double(delay)), receivedAt: received)
        let request = CacheRequest(
            .get, CacheCase.url, fields: fields(later.fields), policy: acceptsStale ? .preferCache : .standard,
            credentials: later.secret.map { .known($0) } ?? .none)
        let now = received.addingTimeInterval(Double(elapsed))
        var verdict = HishelVerdict()
        verdict.fields = Set(stored.map { $0.name.rawValue.lowercased() }).subtracting(HishelVerdict.translatedFields)
        switch rules.decide(request, [entry], at: now) {
        case .serve(let used, let report):
            verdict.use = report.reason == nil ? .fresh : .stale
            verdict.age = Int(CacheRules.age(of: used, at: now))
        case .refresh(let used, _):
            verdict.use = .stale
            verdict.age = Int(CacheRules.age(of: used, at: now))
        case .validate(let used, _):
            verdict.use = .asked
            for field in CacheRules.preconditions(for: used) {
                verdict.conditions[field.name.rawValue.lowercased()] = field.value
            }
        case .complete, .forward: verdict.use = .asked
        case .unavailable: verdict.use = .unavailable
        }
        return verdict
    }

    // MARK: Random scenarios

    private static let times = [0, 1, 9, 10, 11, 30, 60, 100, 100_000]
    private static let simple: [[String]] = [
        ["no-cache"], ["no-store"], ["private"], ["public"], ["public"], ["must-revalidate"], ["must-revalidate"],
        ["proxy-revalidate"], ["must-understand", "no-store"], ["must-understand"], ["immutable"], ["no-transform"],
        ["private=\"X-Own\""], ["no-cache=\"X-Own\""], ["no-cache=\"X-Own, X-Other\""], ["ext=\"a, no-store\""],
    ]

    /// Returns a random scenario; half of them differ from a usual one only in what decides about freshness.
    static func random(_ chance: inout SeededChance) -> HishelScenario {
        let isUsual = Bool.random(using: &chance)
        var scenario = HishelScenario()
        scenario.isShared = chance.element(of: [false, true])
        scenario.acceptsStale = chance.element(of: [false, false, false, true])
        scenario.status = chance.element(of: [200, 200, 200, 302])
        scenario.control = []
        for _ in 0..<Int.random(in: 0...(isUsual ? 2 : 4), using: &chance) { scenario.control += member(&chance) }
        scenario.expires = chance.one(
            of: [nil, nil, nil, .invalid("0"), .invalid("never"), .at(-10), .at(10), .at(50), .at(100)])
        scenario.tag = chance.element(of: [nil, "\"1\"", "W/\"2\""])
        // Tenths of the differences to `Date` are whole seconds.
        scenario.changed = chance.element(of: [nil, nil, 50, -10, -100, -1000, -1_000_000, -100_000_000])
        scenario.elapsed = chance.one(
            of: [-30, 0, 1, 5, 9, 10, 11, 29, 30, 31, 59, 60, 61, 99, 100, 101, 5000, 90_000, 200_000])
        if !isUsual { scenario.addUnusual(&chance) }
        if Bool.random(using: &chance) { scenario.later.control = laterControl(&chance) }
        return scenario
    }

    private mutating func addUnusual(_ chance: inout SeededChance) {
        let statuses = [203, 204, 206, 299, 301, 302, 302, 304, 307, 404, 410, 500, 503]
        status = chance.element(of: Array(repeating: 200, count: 12) + statuses)
        date = chance.one(
            of: [.at(0), .at(0), .at(0), .at(0), .at(-10), .at(-50), .at(10), .at(20), .invalid("yesterday"), nil])
        age = chance.element(of: [nil, nil, nil, nil, nil, "0", "5", "50", "50, 3", "x", "-7"])
        vary = chance.element(of: [nil, nil, nil, nil, "*", "Accept-Language", "accept-language, X-Own", "X-Other"])
        setsCookie = chance.element(of: [false, false, false, false, false, false, true])
        hasConnection = chance.element(of: [false, false, false, false, false, false, true])
        delay = chance.element(of: [0, 0, 0, 0, 2, 20])
        first = Asking.random(&chance)
        if Int.random(in: 0..<8, using: &chance) == 0 {
            first.control = [chance.element(of: ["no-store", "max-age=0"])]
        }
        later = Asking.random(&chance)
        if Bool.random(using: &chance) { later.language = first.language }
    }

    /// Returns a random directive of a response, in a few cases with an invalid value or in upper case.
    private static func member(_ chance: inout SeededChance) -> [String] {
        let name: String? = chance.one(
            of: ["max-age", "max-age", "max-age", "s-maxage", "stale-while-revalidate", nil, nil, nil])
        guard let name else { return chance.element(of: simple) }
        let time = chance.element(of: times)
        let values = ["=\(time)", "=\(time)", "=\(time)", "=\(time)", "=\"\(time)\"", "=x", "=", "", "=-5", "=1.5"]
        let text = name + (name.hasPrefix("stale") ? "=\(time)" : chance.element(of: values))
        return [chance.element(of: [text, text, text, text.uppercased()])]
    }

    /// Returns random directives of the later request.
    private static func laterControl(_ chance: inout SeededChance) -> [String] {
        (0..<Int.random(in: 0...2, using: &chance)).map { _ in
            let time = chance.element(of: times)
            return chance.one(
                of: [
                    "max-age=\(time)", "max-age=\(time)", "min-fresh=\(time)", "max-stale=\(time)", "max-stale",
                    "no-cache", "no-store", "only-if-cached", "no-transform",
                ])
        }
    }
}

extension HishelScenario.Asking {
    fileprivate static func random(_ chance: inout SeededChance) -> Self {
        var asking = Self()
        asking.isReload = Int.random(in: 0..<20, using: &chance) == 0
        asking.language = chance.element(of: [nil, "de", "de", "en", "de,en", "de, en"])
        asking.secret = chance.element(of: [nil, nil, nil, nil, nil, nil, "a", "b"])
        return asking
    }
}

extension SeededChance {
    fileprivate mutating func element<Value>(of values: [Value]) -> Value {
        values[Int.random(in: 0..<values.count, using: &self)]
    }
}
