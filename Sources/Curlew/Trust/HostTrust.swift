// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Selects an evaluator for each host, by the best matching pattern.
///
/// A host without an evaluator is refused, with and without TLS, unless `otherwise` is set.
///
/// ```swift
/// let trust = try HostTrust([
///     "api.example.com": PinnedPublicKeys(pins, backup: spare),
///     "*.cdn.example.com": SystemTrust(),
///     "**.internal.example": CustomRoots(file: "/etc/ourca.pem"),
/// ])
/// ```
public struct HostTrust: TrustEvaluator, PartiallyPrepared {
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

    /// Creates the evaluator from evaluators for hosts.
    ///
    /// - Parameters:
    ///   - evaluators: Evaluators by pattern. A host takes precedence over a pattern, a longer domain over a shorter
    ///     one, and `*.` over `**.`.
    ///   - otherwise: The evaluator for other hosts; without it, they are refused. Nil by default.
    /// - Throws: `TrustFailure.InvalidPolicy` when a pattern is invalid, or two mean the same hosts.
    public init(
        _ evaluators: [HostTrust.Pattern: any TrustEvaluator], otherwise: (any TrustEvaluator)? = nil
    ) throws(TrustFailure.InvalidPolicy) {
        entries = try HostTable(evaluators.mapValues { Entry(evaluator: $0) })
        self.otherwise = otherwise.map { Entry(evaluator: $0) }
    }

    /// Returns the evaluator for a host; nil when the host is refused.
    ///
    /// - Parameter host: An A-label in lower case or an IP address.
    public func evaluator(for host: String) -> (any TrustEvaluator)? { (entries[host] ?? otherwise)?.evaluator }

    /// Empty: each evaluator has its own roots.
    public var roots: TrustRoots { .empty }

    /// Whether at least one evaluator requests OCSP responses.
    public var wantsOCSPResponse: Bool { all.contains { $0.evaluator.wantsOCSPResponse } }

    /// Returns whether the host's evaluator allows plain HTTP; false for a host without an evaluator.
    public func allowsPlainHTTP(to host: String) -> Bool {
        evaluator(for: host)?.allowsPlainHTTP(to: host) ?? false
    }

    /// Prepares all evaluators; hosts of an evaluator that cannot be prepared are refused until it can be.
    public func prepare() {
        for entry in all { entry.preparation.prepare(entry.evaluator) }
    }

    var hasUnpreparedEvaluators: Bool { all.contains { $0.preparation.isIncomplete($0.evaluator) } }

    /// Runs the host's evaluator.
    ///
    /// - Throws: The error of that evaluator, or `TrustFailure` with rule `.unlistedHost`.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        guard let entry = entries[peer.host] ?? otherwise else {
            throw TrustFailure(
                .unlistedHost, "there is no evaluator for \(peer.host)",
                hint: "Add a pattern for the host to HostTrust, or set otherwise, the evaluator for all other hosts.")
        }
        try entry.preparation.judge(peer, by: entry.evaluator)
    }

    private var all: [Entry] { entries.values + [otherwise].compactMap(\.self) }
}

extension TrustEvaluator where Self == HostTrust {
    /// Returns an evaluator that selects another evaluator for each host; hosts without one are refused.
    ///
    /// - Throws: `TrustFailure.InvalidPolicy` when a pattern is invalid, or two mean the same hosts.
    public static func perHost(_ evaluators: [HostTrust.Pattern: any TrustEvaluator]) throws(TrustFailure.InvalidPolicy)
        -> HostTrust
    {
        try HostTrust(evaluators)
    }
}
