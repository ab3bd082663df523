// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

extension Stage {
    /// Returns all servers to try; their verdicts are in the order of the policies.
    func servers() throws -> [ServerCase] { try keys() + certificates() + strangers() + ocspResponses() }

    private func keys() throws -> [ServerCase] {
        [
            try shown("as it should be", "yes yes yes yes yes yes", ours),
            try shown("renewed with the same key", "yes yes certificate yes yes certificate", renewed()),
            try shown("renewed with the spare key", "yes yes certificate yes yes certificate", spare),
            try shown("renewed with another key", "yes pin certificate yes pin certificate", issuer.issue()),
        ]
    }

    private func certificates() throws -> [ServerCase] {
        let weak = try issuer.issue(CertificateOptions(key: .rsa(1024)))
        let late = try renewed(CertificateOptions(validity: .expired))
        let elsewhere = try renewed(CertificateOptions(hosts: ["elsewhere.example"]))
        return [
            try shown(
                "without the issuer's certificate", "chain chain chain chain yes yes", ours.serving(intermediates: [])),
            try shown("expired", "validity validity validity validity validity certificate", late),
            try shown("for another host", "hostName hostName hostName hostName hostName certificate", elsewhere),
            try shown("an RSA key of 1024 bits", "chain chain chain chain pin chain", weak),
        ]
    }

    private func strangers() throws -> [ServerCase] {
        let stranger = try TestAuthority(commonName: "A Stranger").issue()
        let own = try TestIdentity.selfSigned(CertificateOptions(privateKeyPEM: ours.privateKeyPEM))
        return [
            try shown("self-signed", "chain chain chain chain pin certificate", .selfSigned()),
            try shown("self-signed with the pinned key", "chain chain chain chain yes certificate", own),
            try shown("of a stranger", "chain chain chain chain pin certificate", stranger),
            try shown(
                "of a stranger, ours appended", "chain chain chain chain pin certificate",
                stranger.serving(intermediates: ours.chain)),
            try shown(
                "ours, a stranger's appended", "yes yes yes yes yes yes",
                ours.serving(intermediates: ours.intermediates + stranger.chain)),
        ]
    }

    private func ocspResponses() throws -> [ServerCase] {
        let revoked = try issuer.ocspResponse(for: ours.certificate, status: .revoked)
        let forged = try issuer.ocspResponse(for: ours.certificate, signer: .forger)
        return [
            ServerCase("without an OCSP response", "yes yes yes revocation yes yes", ours, ocspResponse: nil),
            ServerCase("with a forged OCSP response", "yes yes yes revocation yes yes", ours, ocspResponse: forged),
            ServerCase("revoked", "yes yes yes revocation yes yes", ours, ocspResponse: revoked),
        ]
    }

    /// Issues another certificate for the same key.
    private func renewed(_ options: CertificateOptions = CertificateOptions()) throws -> TestIdentity {
        var options = options
        options.privateKeyPEM = ours.privateKeyPEM
        return try issuer.issue(options)
    }

    /// Returns a server with an OCSP response of status `good`.
    private func shown(_ name: String, _ verdicts: String, _ identity: TestIdentity) throws -> ServerCase {
        ServerCase(name, verdicts, identity, ocspResponse: try issuer.ocspResponse(for: identity.certificate))
    }
}
