// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

@testable import Curlew

/// A difference between Curlew and hishel 2.0, in the order in which a scenario is translated.
enum HishelDifference: String, Sendable, CaseIterable {
    /// RFC 9111 §5.2.1.5: after `no-store` in the request the response is not stored. hishel ignores that directive.
    case requestNoStore
    /// §5.2.2.3: a cache that understands the status ignores `no-store` next to `must-understand`. hishel does not.
    case mustUnderstand
    /// §3 lets a cache refuse a status that it does not understand. hishel stores every status except 206 and 304.
    case unknownStatus
    /// §7.3: the cache chooses. Curlew never stores `Set-Cookie`, nor in a shared cache the response; hishel does.
    case cookie
    /// §3.1: a field that `Connection` lists is not stored. hishel removes `Connection` itself only.
    case connection
    /// §4.1: a response with `Vary: *` answers no request. hishel stores it, and then never uses it.
    case varyAll
    /// §5.2.2.7: `private` with field names is about shared caches. For hishel it allows any status in a private one.
    case privateList
    /// §4.2.1: the first of repeated directives counts. For hishel the last one does.
    case repeated
    /// §4.2.1: a response with an invalid time should be stale. hishel ignores the directive.
    case invalidTime
    /// §4.2.2: only a cacheable status has a heuristic lifetime; Curlew's ends after a day. hishel's depends on the
    /// current time, ends after a week, and is for any status.
    case heuristic
    /// §4.2.3: `Age`, the delay, and a clock that differs count. hishel subtracts `Date` from the current time, and
    /// without a valid `Date` a response does not age.
    case age
    /// §5.4: programs of HTTP/1.0 send `Pragma: no-cache`. hishel ignores it.
    case reload
    /// §4.1: white space in lists does not count. hishel compares values as they are.
    case whiteSpace
    /// §4.1: a response for other fields is not used; Curlew forwards the request. hishel also sends the validators.
    case otherFields
    /// §5.2.1.5: Curlew forwards a request with `no-store`. hishel answers it from the cache.
    case laterNoStore
    /// Curlew uses a response to a request with credentials only for the same ones. For hishel it is like any other.
    case credentials
    /// §5.2.1.2: `max-stale` accepts a stale response. hishel ignores it.
    case maxStale
    /// RFC 5861 §3: a stale response is used while it is validated. hishel ignores `stale-while-revalidate`.
    case staleWhileRevalidate
    /// §5.2.1.1 and §5.2.1.3: the request limits the age. hishel ignores its `max-age` and `min-fresh`.
    case limits
    /// §5.2.2.8 and §5.2.2.10: `proxy-revalidate` and `s-maxage` forbid stale responses to shared caches. For hishel
    /// only `must-revalidate` and `no-cache` do.
    case sharedStale
    /// §5.2.2.4: `no-cache` with field names is about these fields. For hishel it forbids every stale use, and of
    /// several lists the last one counts.
    case lists
    /// §5.2.1.7: a request with `only-if-cached` is not sent. hishel ignores it.
    case offline
}

/// A scenario in which hishel must come to the verdict that Curlew comes to in the original.
struct HishelTranslation: Sendable {
    let original: HishelScenario
    fileprivate(set) var scenario: HishelScenario
    /// The differences that the translation bridges.
    private(set) var differences: [HishelDifference] = []

    // A scenario cannot express these parts of the verdict.
    fileprivate var isRefused = false
    fileprivate var hasNoConditions = false
    fileprivate var isOffline = false
    fileprivate var leftOut: Set<String> = []

    init(_ scenario: HishelScenario) {
        (original, self.scenario) = (scenario, scenario)
        for difference in HishelDifference.allCases {
            if difference.apply(to: &self) { differences.append(difference) }
        }
    }

    func adjusted(_ verdict: HishelVerdict) -> HishelVerdict {
        guard !isRefused, let fields = verdict.fields else { return .refused }
        var verdict = verdict
        verdict.fields = fields.subtracting(leftOut)
        guard verdict.use == .asked else { return verdict }
        if hasNoConditions || isOffline { verdict.conditions = [:] }
        if isOffline { verdict.use = .unavailable }
        return verdict
    }

    // MARK: Facts of the original

    fileprivate var date: Int { original.date?.offset ?? 0 }

    /// The age at the later request (RFC 9111 §4.2.3).
    fileprivate var age: Int {
        let first = original.age?.split(separator: ",").first.map(String.init) ?? ""
        let value = first.allSatisfy(\.isNumber) ? Int(first) ?? 0 : 0
        return max(max(0, -date), value + original.delay) + max(0, original.elapsed)
    }

    /// The explicit or translated lifetime; the age must be translated already.
    fileprivate var lifetime: Int {
        let control = scenario.control
        if scenario.isShared, let time = control.seconds("s-maxage") { return time }
        if let time = control.seconds("max-age") { return time }
        guard let end = scenario.expires?.offset, let date = scenario.date?.offset else { return 0 }
        return max(end - date, 0)
    }

    /// Whether `max-age` or `min-fresh` of the request refuse the response.
    fileprivate var isRefusedByLimits: Bool {
        let control = original.later.control
        if let limit = control.seconds("max-age"), age > limit { return true }
        if let limit = control.seconds("min-fresh"), lifetime - age < limit { return true }
        return false
    }

    fileprivate var forbidsStaleToSharedCaches: Bool {
        original.isShared
            && (original.control.has("proxy-revalidate") || original.control.seconds("s-maxage") != nil)
    }

    fileprivate var forbidsStale: Bool { original.control.has("must-revalidate") || forbidsStaleToSharedCaches }
}

extension [String] {
    /// Whether a directive without a value is a member.
    fileprivate func has(_ name: String) -> Bool { contains { $0.lowercased() == name } }

    fileprivate func value(_ member: String) -> String? {
        guard let sign = member.firstIndex(of: "=") else { return nil }
        return String(member[sign...].dropFirst()).filter { $0 != "\"" }
    }

    fileprivate func name(_ member: String) -> String { member.prefix { $0 != "=" }.lowercased() }

    /// The time of the first directive with a name; zero for an invalid time.
    fileprivate func seconds(_ name: String) -> Int? {
        guard let member = first(where: { self.name($0) == name }) else { return nil }
        let value = value(member) ?? ""
        return value.allSatisfy(\.isNumber) ? Int(value) ?? 0 : 0
    }
}

extension HishelDifference {
    /// Translates a scenario; returns false if the difference does not matter in it.
    fileprivate func apply(to translation: inout HishelTranslation) -> Bool {
        switch self {
        case .requestNoStore, .mustUnderstand, .unknownStatus, .cookie, .connection, .varyAll, .privateList:
            applyToStoring(&translation)
        case .repeated, .invalidTime, .heuristic, .age: applyToFreshness(&translation)
        case .reload, .whiteSpace, .otherFields, .laterNoStore, .credentials: applyToRequest(&translation)
        case .maxStale, .staleWhileRevalidate, .limits, .sharedStale, .lists, .offline: applyToStale(&translation)
        }
    }

    private func applyToStoring(_ translation: inout HishelTranslation) -> Bool {
        let original = translation.original
        let control = translation.scenario.control
        switch self {
        case .requestNoStore where original.first.control.has("no-store"),
            .unknownStatus where original.status == 299,
            .varyAll where original.vary?.contains("*") ?? false:
            translation.isRefused = true
        case .mustUnderstand
        where control.has("must-understand") && control.has("no-store") && original.status != 299:
            translation.scenario.control.removeAll { $0.lowercased() == "no-store" }
        case .cookie where original.setsCookie:
            translation.leftOut.insert("set-cookie")
            if original.isShared { translation.isRefused = true }
        case .connection where original.hasConnection: translation.leftOut.insert("x-other")
        case .privateList where !original.isShared && control.contains(where: { $0.hasPrefix("private=") }):
            translation.scenario.control.removeAll { $0.hasPrefix("private=") }
        default: return false
        }
        return true
    }

    private func applyToFreshness(_ translation: inout HishelTranslation) -> Bool {
        let scenario = translation.scenario
        let control = scenario.control
        switch self {
        case .repeated:
            var seen: Set<String> = []
            translation.scenario.control = control.filter { member in
                let name = control.name(member)
                return !Self.timed.contains(name) || seen.insert(name).inserted
            }
            return translation.scenario.control != control
        case .invalidTime:
            translation.scenario.control = control.map { member in
                let (name, value) = (control.name(member), control.value(member) ?? "")
                let isValid = !value.isEmpty && value.allSatisfy(\.isNumber)
                return isValid || name != "max-age" && name != "s-maxage" ? member : "\(name)=0"
            }
            return translation.scenario.control != control
        case .heuristic:
            let isExplicit =
                control.seconds("max-age") != nil || scenario.expires != nil
                || scenario.isShared && control.seconds("s-maxage") != nil
            guard let changed = scenario.changed, !isExplicit else { return false }
            let isAllowed = Self.cacheable.contains(scenario.status) || control.has("public")
            guard isAllowed || !scenario.isShared && control.has("private") else { return false }
            let lifetime = isAllowed ? min(max((translation.date - changed) / 10, 0), 86_400) : 0
            translation.scenario.control.append("max-age=\(lifetime)")
            return true
        case .age:
            translation.scenario.age = nil
            let date = scenario.elapsed - translation.age
            if scenario.date == .at(date) { return false }
            if let end = scenario.expires?.offset { translation.scenario.expires = .at(end + date - translation.date) }
            translation.scenario.date = .at(date)
            return true
        default: return false
        }
    }

    private static let timed: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate"]
    /// The statuses that are cacheable without explicit freshness (RFC 9110 §15.1), except 206.
    private static let cacheable: Set<Int> = [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501]

    private func applyToRequest(_ translation: inout HishelTranslation) -> Bool {
        let original = translation.original
        let (first, later) = (original.first.language, translation.scenario.later.language)
        switch self {
        case .reload where original.later.isReload && original.later.control.isEmpty:
            translation.scenario.later.control = ["no-cache"]
        case .whiteSpace
        where first != later && first?.filter({ $0 != " " }) == later?.filter({ $0 != " " }):
            translation.scenario.later.language = first
        case .otherFields where first != later && original.vary?.lowercased().contains("accept-language") ?? false:
            translation.hasNoConditions = true
        case .laterNoStore where original.later.control.has("no-store"),
            .credentials
        where !original.isShared && original.first.secret != original.later.secret
            && !original.control.has("public"):
            translation.scenario.later.control.append("no-cache")
            translation.hasNoConditions = true
        default: return false
        }
        return true
    }

    private func applyToStale(_ translation: inout HishelTranslation) -> Bool {
        let original = translation.original
        let (age, lifetime) = (translation.age, translation.lifetime)
        let asked = original.later.control
        let isRefused = translation.isRefusedByLimits
        let mayBeStale = !original.acceptsStale && !translation.forbidsStale
        switch self {
        case .maxStale where mayBeStale && (age >= lifetime || isRefused):
            guard let member = asked.first(where: { asked.name($0) == "max-stale" }) else { return false }
            let freshness = min(lifetime, asked.seconds("max-age") ?? lifetime)
            let staleness = age + (asked.seconds("min-fresh") ?? 0) - freshness
            if let limit = asked.value(member).flatMap({ Int($0) }), staleness > limit { return false }
            translation.scenario.acceptsStale = true
        case .staleWhileRevalidate where mayBeStale && !translation.scenario.acceptsStale && age >= lifetime:
            guard asked.seconds("max-age") == nil, asked.seconds("min-fresh") == nil,
                let limit = original.control.seconds("stale-while-revalidate"), age - lifetime < limit
            else { return false }
            translation.scenario.acceptsStale = true
        case .limits where isRefused && !translation.scenario.acceptsStale:
            translation.scenario.later.control.append("no-cache")
        case .sharedStale where original.acceptsStale && translation.forbidsStaleToSharedCaches:
            translation.scenario.acceptsStale = false
        case .lists: return applyToLists(&translation)
        case .offline where asked.has("only-if-cached"): translation.isOffline = true
        default: return false
        }
        return true
    }

    private func applyToLists(_ translation: inout HishelTranslation) -> Bool {
        var isChanged = false
        for name in ["no-cache", "private"] {
            let control = translation.scenario.control
            let lists = control.filter { $0.hasPrefix("\(name)=") }
            let isStale = name == "no-cache" && translation.scenario.acceptsStale
            guard !lists.isEmpty, isStale || lists.count + (control.has(name) ? 1 : 0) > 1 else { continue }
            for list in lists {
                let names = HeaderFields.names(in: control.value(list) ?? "")
                translation.leftOut.formUnion(names.map { $0.rawValue.lowercased() })
            }
            translation.scenario.control.removeAll { lists.contains($0) }
            isChanged = true
        }
        return isChanged
    }
}

// MARK: Examples

extension HishelDifference {
    /// A scenario in which this difference alone matters.
    var example: HishelScenario {
        var scenario = HishelScenario()
        switch self {
        case .requestNoStore: scenario.first.control = ["no-store"]
        case .mustUnderstand: scenario.control += ["must-understand", "no-store"]
        case .unknownStatus: scenario.status = 299
        case .cookie: scenario.setsCookie = true
        case .connection: scenario.hasConnection = true
        case .varyAll: scenario.vary = "*"
        case .privateList: (scenario.status, scenario.control) = (302, ["private=\"X-Own\""])
        case .repeated: scenario.control += ["max-age=5"]
        case .invalidTime: (scenario.control, scenario.expires) = (["max-age=x"], .at(100))
        case .heuristic: (scenario.control, scenario.changed, scenario.elapsed) = ([], -1_000_000, 90_000)
        case .age: scenario.age = "95"
        case .reload: scenario.later.isReload = true
        case .whiteSpace: (scenario.first.language, scenario.later.language) = ("de,en", "de, en")
        case .otherFields: (scenario.first.language, scenario.later.language) = ("de", "en")
        case .laterNoStore: scenario.later.control = ["no-store"]
        case .credentials: scenario.first.secret = "a"
        case .maxStale: scenario.later.control = ["max-stale=50"]
        case .staleWhileRevalidate: scenario.control += ["stale-while-revalidate=50"]
        case .limits: scenario.later.control = ["max-age=5"]
        case .sharedStale:
            (scenario.isShared, scenario.acceptsStale) = (true, true)
            scenario.control += ["proxy-revalidate"]
        case .lists:
            scenario.acceptsStale = true
            scenario.control += ["no-cache=\"X-Own\""]
        case .offline: scenario.later.control = ["only-if-cached"]
        }
        if self == .whiteSpace || self == .otherFields { scenario.vary = "Accept-Language" }
        let needsStale: [HishelDifference] = [.maxStale, .staleWhileRevalidate, .sharedStale, .lists, .offline]
        if needsStale.contains(self) { scenario.elapsed = 120 }
        return scenario
    }
}
