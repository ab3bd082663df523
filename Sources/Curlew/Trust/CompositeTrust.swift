// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Accepts servers that all of several evaluators accept.
///
/// The evaluators run in order until the first one refuses. Each sees the chain as verified with its own roots. An
/// empty list rejects every server.
///
/// ```swift
/// let trust = AllTrust(SystemTrust(), OurServersOnly())
/// ```
public struct AllTrust<each Evaluator: TrustEvaluator>: TrustEvaluator, PartiallyPrepared {
    /// The evaluators, in the order in which they run.
    public let evaluators: (repeat each Evaluator)

    /// Combines evaluators.
    public init(_ evaluators: repeat each Evaluator) { self.evaluators = (repeat each evaluators) }

    /// Empty: each evaluator has its own roots.
    public var roots: TrustRoots { .empty }

    /// Whether at least one evaluator requests OCSP responses.
    public var wantsOCSPResponse: Bool {
        for evaluator in repeat each evaluators {
            if evaluator.wantsOCSPResponse { return true }
        }
        return false
    }

    /// Returns whether all evaluators allow plain HTTP to the host.
    public func allowsPlainHTTP(to host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if !evaluator.allowsPlainHTTP(to: host) { return false }
        }
        return true
    }

    /// Prepares the evaluators in order, up to the first that fails.
    ///
    /// - Throws: The error of the evaluator that failed.
    public func prepare() throws(TrustFailure) {
        for evaluator in repeat each evaluators { try evaluator.prepare() }
    }

    var hasUnpreparedEvaluators: Bool {
        for evaluator in repeat each evaluators {
            if evaluator.isIncomplete { return true }
        }
        return false
    }

    /// Runs the evaluators in order, up to the first that refuses.
    ///
    /// - Throws: The error of the evaluator that refused.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        var isJudged = false
        for evaluator in repeat each evaluators {
            try evaluator.judge(peer)
            isJudged = true
        }
        // An empty list rejects every server.
        if !isJudged { throw TrustFailure(.noneAccepts, "the list of evaluators is empty") }
    }

    /// Whether all evaluators are equal.
    public static func == (one: AllTrust, other: AllTrust) -> Bool {
        for (left, right) in repeat (each one.evaluators, each other.evaluators) {
            if left != right { return false }
        }
        return true
    }

    /// Hashes all evaluators.
    public func hash(into hasher: inout Hasher) {
        for evaluator in repeat each evaluators { hasher.combine(evaluator) }
    }
}

/// Accepts servers that at least one of several evaluators accepts.
///
/// The evaluators run in order until the first one accepts. Each sees the chain as verified with its own roots. An
/// empty list rejects every server.
public struct AnyTrust<each Evaluator: TrustEvaluator>: TrustEvaluator, PartiallyPrepared {
    /// The evaluators, in the order in which they run.
    public let evaluators: (repeat each Evaluator)

    private let preparations: [Preparation]

    /// Combines evaluators.
    public init(_ evaluators: repeat each Evaluator) {
        self.evaluators = (repeat each evaluators)
        var preparations: [Preparation] = []
        for _ in repeat each evaluators { preparations.append(Preparation()) }
        self.preparations = preparations
    }

    /// Empty: each evaluator has its own roots.
    public var roots: TrustRoots { .empty }

    /// Whether at least one evaluator requests OCSP responses.
    public var wantsOCSPResponse: Bool { AllTrust(repeat each evaluators).wantsOCSPResponse }

    /// Returns whether at least one evaluator allows plain HTTP to the host.
    public func allowsPlainHTTP(to host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if evaluator.allowsPlainHTTP(to: host) { return true }
        }
        return false
    }

    /// Prepares all evaluators; an evaluator that cannot be prepared rejects every server until it can be.
    public func prepare() {
        var place = 0
        for evaluator in repeat each evaluators {
            preparations[place].prepare(evaluator)
            place += 1
        }
    }

    var hasUnpreparedEvaluators: Bool {
        var place = 0
        for evaluator in repeat each evaluators {
            if preparations[place].isIncomplete(evaluator) { return true }
            place += 1
        }
        return false
    }

    /// Runs the evaluators until one accepts.
    ///
    /// - Throws: `TrustFailure` with rule `.noneAccepts` and the failures of all evaluators as its causes; if there is
    ///   exactly one evaluator, its failure.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        var failures: [TrustFailure] = []
        for evaluator in repeat each evaluators {
            do throws(TrustFailure) {
                return try preparations[failures.count].judge(peer, by: evaluator)
            } catch {
                failures.append(error)
            }
        }
        if failures.count == 1 { throw failures[0] }
        throw TrustFailure(
            .noneAccepts,
            "all \(failures.count) evaluators reject the server: "
                + failures.map(\.description).joined(separator: "; "),
            certificate: failures.first?.certificate, causes: failures)
    }

    /// Whether all evaluators are equal.
    public static func == (one: AnyTrust, other: AnyTrust) -> Bool {
        AllTrust(repeat each one.evaluators) == AllTrust(repeat each other.evaluators)
    }

    /// Hashes all evaluators.
    public func hash(into hasher: inout Hasher) { hasher.combine(AllTrust(repeat each evaluators)) }
}

extension TrustEvaluator {
    /// Returns an evaluator that accepts servers that all of several evaluators accept.
    public static func all<each Evaluator: TrustEvaluator>(
        of evaluators: repeat each Evaluator
    ) -> AllTrust<repeat each Evaluator> where Self == AllTrust<repeat each Evaluator> {
        AllTrust(repeat each evaluators)
    }

    /// Returns an evaluator that accepts servers that at least one of several evaluators accepts.
    public static func any<each Evaluator: TrustEvaluator>(
        of evaluators: repeat each Evaluator
    ) -> AnyTrust<repeat each Evaluator> where Self == AnyTrust<repeat each Evaluator> {
        AnyTrust(repeat each evaluators)
    }
}
