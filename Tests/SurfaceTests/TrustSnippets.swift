// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import FoundationEssentials

// Snippets of the doc comments about trust, word for word; parameters provide the values that a snippet assumes.

// Trust/TrustEvaluator.swift
struct OurServersOnly: TrustEvaluator {
    func evaluate(_ peer: PeerIdentity) throws(TrustFailure) {
        try peer.requireValid()
        guard peer.host.hasSuffix(".example.com") else { throw TrustFailure(.unlistedHost, "not one of ours") }
    }
}

// Trust/CompositeTrust.swift
func snippetOfAllTrust() -> any TrustEvaluator {
    let trust = AllTrust(SystemTrust(), OurServersOnly())
    return trust
}

// Trust/BasicTrust.swift
func snippetOfCustomTrust() -> any TrustEvaluator {
    let trust = CustomTrust(id: "ours-2026") { peer throws(TrustFailure) in
        try peer.requireValid()
        guard peer.verifiedChain.last?.subject == "CN=Our Root" else { throw TrustFailure(.chain, "not our root") }
    }
    return trust
}

// Trust/Certificate.swift
func snippetOfCertificate() throws {
    for certificate in try Certificate.all(file: "/etc/ssl/certs/ca-certificates.crt") {
        print(certificate.subject, certificate.notAfter, certificate.publicKeyHash)
    }
}

// Trust/TrustFailure.swift
func snippetOfTrustFailure(_ work: () async throws -> Void) async throws {
    do {
        try await work()
    } catch let error as NetworkError where error.kind == .untrusted {
        if let failure = error.cause as? TrustFailure { print(failure.rule, failure.presentedPins) }
    }
}

// Trust/PinnedCertificates.swift
func snippetOfPinnedCertificates() async throws -> Data {
    let device = try PinnedCertificates(Certificate.all(file: "device.crt"), anchors: .pinsOnly)
    let (data, _) = try await Session(trust: device).data(for: "https://device.local/state")
    return data
}

// Trust/PinnedPublicKeys.swift
func snippetOfPinnedPublicKeys() throws -> any TrustEvaluator {
    let trust = try PinnedPublicKeys(
        ["sha256/Xz1qoP27S5NQLw1Z7IRjPDHtJ0qHdYYdQp0K0FMRzSs="],
        backup: "sha256/YLh1dUR9y6Kja30RrAn7JKnbQG/uEtLMkBgFF2Fuihg=")
    return trust
}

// Trust/HostTrust.swift
func snippetOfHostTrust(_ pins: [Certificate.PublicKeyHash], _ spare: Certificate.PublicKeyHash) throws
    -> any TrustEvaluator
{
    let trust = try HostTrust([
        "api.example.com": PinnedPublicKeys(pins, backup: spare),
        "*.cdn.example.com": SystemTrust(),
        "**.internal.example": CustomRoots(file: "/etc/ourca.pem"),
    ])
    return trust
}

// Trust/Revocation.swift
func snippetOfRevocation() throws -> any TrustEvaluator {
    let trust = try CustomRoots(file: "ca.pem").checkingRevocation(
        lists: Certificate.RevocationList.all(file: "ca.crl"), scope: .chain, ocspResponse: .ifPresent)
    return trust
}

// Trust/ChainRules.swift
func snippetOfChainRules() throws -> [any TrustEvaluator] {
    let trust = SystemTrust().applying(.strict)
    let device = try CustomRoots(file: "device.crt").applying(.authoritiesAsServers)
    return [trust, device]
}

// Trust/ClientIdentity.swift
func snippetOfClientIdentity(_ secret: String) throws -> Session {
    let identity = try ClientIdentity(certificateFile: "client.crt", keyFile: "client.key", passphrase: secret)
    let session = Session(identities: .always(identity))
    return session
}

func snippetOfClientIdentities(_ identity: ClientIdentity) throws -> Session {
    let session = Session(identities: try ClientIdentities(["**.bank.example": identity]))
    return session
}
