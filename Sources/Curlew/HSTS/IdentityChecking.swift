// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An evaluator that is known to accept only servers that prove to be the host, by a valid chain or a pin.
///
/// A policy counts only over a connection without certificate errors (RFC 6797 §8.1). Evaluators that may accept other
/// servers, and those of the user, do not conform.
private protocol IdentityChecking {
    func checksIdentity(of host: String) -> Bool
}

extension TrustEvaluator {
    /// Whether the evaluator is known to accept only servers that prove to be the host.
    func isKnownToCheckIdentity(of host: String) -> Bool {
        (self as? any IdentityChecking)?.checksIdentity(of: host) ?? false
    }
}

extension SystemTrust: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { true }
}

extension CustomRoots: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { true }
}

extension PinnedPublicKeys: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { true }
}

extension PinnedCertificates: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { true }
}

extension SecurityPolicyTrust: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { !allowInvalidCertificates && validatesDomainName }
}

extension ChainTrust: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { base.isKnownToCheckIdentity(of: host) }
}

extension Revocation: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool { base.isKnownToCheckIdentity(of: host) }
}

extension HostTrust: IdentityChecking {
    fileprivate func checksIdentity(of host: String) -> Bool {
        evaluator(for: host)?.isKnownToCheckIdentity(of: host) ?? false
    }
}

extension AllTrust: IdentityChecking {
    /// Whether one of the evaluators, which must all accept the server, checks its identity.
    fileprivate func checksIdentity(of host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if evaluator.isKnownToCheckIdentity(of: host) { return true }
        }
        return false
    }
}

extension AnyTrust: IdentityChecking {
    /// Whether all evaluators, each of which may accept the server alone, check its identity.
    fileprivate func checksIdentity(of host: String) -> Bool {
        for evaluator in repeat each evaluators {
            if !evaluator.isKnownToCheckIdentity(of: host) { return false }
        }
        return true
    }
}
