// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Trusts servers that every one of several evaluators accepts; they are asked in order, up to the first that refuses.
///
/// Each is shown the chain as verified by its own roots. Without any evaluator nobody is accepted.
///
/// ```swift
/// let trust = AllTrust(SystemTrust(), OurServersOnly())
/// ```
public struct AllTrust<each Evaluator: TrustEvaluator>: TrustEvaluator, PartlyPrepared {
    /// The evaluators, in the order in which they are asked.
    public let evaluators: (repeat each Evaluator)

    /// Composes evaluators.
    public init(_ evaluators: repeat each Evaluator) { self.evaluators = (repeat each evaluators) }

    /// None of its own.
    public var roots: TrustRoots { .nobody }

    /// Whether one of them wants it.
    public var wantsStaple: Bool {
        for evaluator in repeat each evaluators {
            if evaluator.wantsStaple { return true }
        }
        return false
    }

    /// Whether all of them allow it.
    public func allowsPlainHTTP(to host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if !evaluator.allowsPlainHTTP(to: host) { return false }
        }
        return true
    }

    /// Prepares all of them.
    ///
    /// - Throws: What the first throws that cannot be prepared.
    public func prepare() throws(TrustFailure) {
        for evaluator in repeat each evaluators { try evaluator.prepare() }
    }

    var isStillToPrepare: Bool {
        for evaluator in repeat each evaluators {
            if evaluator.isIncomplete { return true }
        }
        return false
    }

    /// Asks all of them.
    ///
    /// - Throws: What the first throws that refuses.
    public func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        var isJudged = false
        for evaluator in repeat each evaluators {
            try evaluator.judge(peer)
            isJudged = true
        }
        // Nobody's acceptance is none.
        if !isJudged { throw TrustFailure(.noneAccepts, "there is no evaluator to accept anybody") }
    }

    /// Whether all of them are equal.
    public static func == (one: AllTrust, other: AllTrust) -> Bool {
        for (left, right) in repeat (each one.evaluators, each other.evaluators) {
            if left != right { return false }
        }
        return true
    }

    /// Hashes all of them.
    public func hash(into hasher: inout Hasher) {
        for evaluator in repeat each evaluators { hasher.combine(evaluator) }
    }
}

/// Trusts servers that one of several evaluators accepts; they are asked in order, up to the first that does.
///
/// Each is shown the chain as verified by its own roots. Without any evaluator nobody is accepted.
public struct AnyTrust<each Evaluator: TrustEvaluator>: TrustEvaluator, PartlyPrepared {
    /// The evaluators, in the order in which they are asked.
    public let evaluators: (repeat each Evaluator)

    private let preparations: [Preparation]

    /// Composes evaluators.
    public init(_ evaluators: repeat each Evaluator) {
        self.evaluators = (repeat each evaluators)
        var preparations: [Preparation] = []
        for _ in repeat each evaluators { preparations.append(Preparation()) }
        self.preparations = preparations
    }

    /// None of its own.
    public var roots: TrustRoots { .nobody }

    /// Whether one of them wants it.
    public var wantsStaple: Bool { AllTrust(repeat each evaluators).wantsStaple }

    /// Whether one of them allows it.
    public func allowsPlainHTTP(to host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if evaluator.allowsPlainHTTP(to: host) { return true }
        }
        return false
    }

    /// Prepares all of them; one that cannot be accepts nobody until it can.
    public func prepare() {
        var place = 0
        for evaluator in repeat each evaluators {
            preparations[place].prepare(evaluator)
            place += 1
        }
    }

    var isStillToPrepare: Bool {
        var place = 0
        for evaluator in repeat each evaluators {
            if preparations[place].isIncomplete(evaluator) { return true }
            place += 1
        }
        return false
    }

    /// Asks them until one accepts.
    ///
    /// - Throws: `TrustFailure` with rule `.noneAccepts` and the failures of all as its causes; the failure itself when there is one.
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
            "none of \(failures.count) evaluators accepts: "
                + failures.map(\.description).joined(separator: "; "),
            certificate: failures.first?.certificate, causes: failures)
    }

    /// Whether all of them are equal.
    public static func == (one: AnyTrust, other: AnyTrust) -> Bool {
        AllTrust(repeat each one.evaluators) == AllTrust(repeat each other.evaluators)
    }

    /// Hashes all of them.
    public func hash(into hasher: inout Hasher) { hasher.combine(AllTrust(repeat each evaluators)) }
}

extension TrustEvaluator {
    /// Trusts servers that every one of several evaluators accepts.
    public static func all<each Evaluator: TrustEvaluator>(
        of evaluators: repeat each Evaluator
    ) -> AllTrust<repeat each Evaluator> where Self == AllTrust<repeat each Evaluator> {
        AllTrust(repeat each evaluators)
    }

    /// Trusts servers that one of several evaluators accepts.
    public static func any<each Evaluator: TrustEvaluator>(
        of evaluators: repeat each Evaluator
    ) -> AnyTrust<repeat each Evaluator> where Self == AnyTrust<repeat each Evaluator> {
        AnyTrust(repeat each evaluators)
    }
}
