// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Asks another evaluator for each host: the one whose pattern fits best.
///
/// A host without an evaluator is refused, also without TLS, unless `otherwise` names one.
///
/// ```swift
/// let trust = try HostTrust([
///     "api.example.com": PinnedPublicKeys(pins, backup: spare),
///     "*.cdn.example.com": SystemTrust(),
///     "**.internal.example": CustomRoots(file: "/etc/ourca.pem"),
/// ])
/// ```
public struct HostTrust: TrustEvaluator, PartlyPrepared {
    private struct Entry: Hashable, Sendable {
        let evaluator: any TrustEvaluator
        let preparation = Preparation()

        static func == (one: Entry, other: Entry) -> Bool {
            AnyHashable(one.evaluator) == AnyHashable(other.evaluator)
        }

        func hash(into hasher: inout Hasher) { hasher.combine(AnyHashable(evaluator)) }
    }

    private let entries: HostTable<Entry>
    private let otherwise: Entry?

    /// Names evaluators for hosts.
    ///
    /// - Parameters:
    ///   - evaluators: Evaluators by patterns. A host comes before a pattern, a longer domain before a shorter one, and
    ///     `*.` before `**.`.
    ///   - otherwise: Who is asked about other hosts; they are refused by default.
    /// - Throws: `InvalidTrust` when a pattern is none, or two mean the same.
    public init(
        _ evaluators: [HostPattern: any TrustEvaluator], otherwise: (any TrustEvaluator)? = nil
    ) throws(InvalidTrust) {
        entries = try HostTable(evaluators.mapValues { Entry(evaluator: $0) })
        self.otherwise = otherwise.map { Entry(evaluator: $0) }
    }

    /// Who is asked about a host; nil when it is refused.
    ///
    /// - Parameter host: An A-label in lower case or an IP address.
    public func evaluator(for host: String) -> (any TrustEvaluator)? { (entries[host] ?? otherwise)?.evaluator }

    /// None of its own.
    public var roots: TrustRoots { .nobody }

    /// Whether one of them wants it.
    public var wantsStaple: Bool { all.contains { $0.evaluator.wantsStaple } }

    /// Whether the host's evaluator allows it; none does where none is named.
    public func allowsPlainHTTP(to host: String) -> Bool {
        evaluator(for: host)?.allowsPlainHTTP(to: host) ?? false
    }

    /// Prepares all of them; the hosts of one that cannot be are refused until it can.
    public func prepare() {
        for entry in all { entry.preparation.prepare(entry.evaluator) }
    }

    var isStillToPrepare: Bool { all.contains { $0.preparation.isIncomplete($0.evaluator) } }

    /// Asks the host's evaluator.
    ///
    /// - Throws: What that throws, or `TrustFailure` with rule `.unlistedHost`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        guard let entry = entries[peer.host] ?? otherwise else {
            throw TrustFailure(
                .unlistedHost, "no evaluator is named for \(peer.host)",
                hint: "Add a pattern for it to HostTrust, or name one for all other hosts with otherwise.")
        }
        try entry.preparation.judge(peer, by: entry.evaluator)
    }

    private var all: [Entry] { entries.values + [otherwise].compactMap(\.self) }
}

extension TrustEvaluator where Self == HostTrust {
    /// Asks another evaluator for each host; others are refused.
    ///
    /// - Throws: `InvalidTrust` when a pattern is none.
    public static func perHost(_ evaluators: [HostPattern: any TrustEvaluator]) throws(InvalidTrust) -> HostTrust {
        try HostTrust(evaluators)
    }
}
