// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import CurlewTesting

/// The newly created certificates, revocation lists and OCSP response of a scenario.
struct TrustScenarioChain: Sendable {
    let scenario: TrustScenario
    /// The certificates that the server sends, with its key.
    let identity: TestIdentity
    /// The OCSP response that the server staples.
    let ocspResponse: [UInt8]?
    /// The revocation lists of the client.
    let lists: [TestRevocationList]
    private let certificates: [String: TestCertificate]

    init(_ scenario: TrustScenario) throws {
        var workshop = TrustWorkshop(scenario: scenario)
        for id in scenario.certificates.keys.sorted() { try workshop.make(id) }
        self.scenario = scenario
        certificates = workshop.certificates
        identity = try workshop.identity()
        ocspResponse = try workshop.ocspResponse()
        lists = try (scenario.crls ?? []).map { try workshop.list($0) }
    }

    /// The roots that the client trusts.
    func roots() throws -> [TestCertificate] { try scenario.roots.map { try certificate($0) } }

    func certificate(_ id: String) throws -> TestCertificate {
        guard let certificate = certificates[id] else { throw TrustScenarioFailure("there is no certificate “\(id)”") }
        return certificate
    }

    /// The server as an evaluator sees it, without a connection.
    func peer() throws -> PeerIdentity {
        let served = try identity.chain.map { try Certificate(der: $0.der) }
        return PeerIdentity(host: scenario.host, certificates: served, ocspResponse: ocspResponse)
    }

    /// The TLS settings of the server.
    func serverOptions() throws -> MockServer.Options {
        var options = MockServer.Options()
        options.tls.ocspResponse = ocspResponse
        guard let server = scenario.server else { return options }
        if let text = server.minimum { options.tls.minimumVersion = try version(text) }
        if let text = server.maximum { options.tls.maximumVersion = try version(text) }
        options.tls.securityLevel = server.securityLevel
        if let necessity = server.clientCertificate {
            // Any authority will do: the client has no certificate.
            options.tls.clientAuthority = try TestAuthority()
            options.tls.requiresClientCertificate = necessity == "required"
        }
        return options
    }

    private func version(_ text: String) throws -> MockServer.TLSOptions.Version {
        let versions: [String: MockServer.TLSOptions.Version] = [
            "1.0": .v1_0, "1.1": .v1_1, "1.2": .v1_2, "1.3": .v1_3,
        ]
        guard let version = versions[text] else { throw TrustScenarioFailure("there is no TLS \(text)") }
        return version
    }
}

/// Creates the certificates of one scenario, issuers first.
private struct TrustWorkshop {
    let scenario: TrustScenario
    private var authorities: [String: TestAuthority] = [:]
    private var leaves: [String: TestIdentity] = [:]
    private var rsaKeys: [TrustScenario.Recipe.Kind: Int] = [:]

    init(scenario: TrustScenario) { self.scenario = scenario }

    var certificates: [String: TestCertificate] {
        authorities.mapValues(\.certificate).merging(leaves.mapValues(\.certificate)) { one, _ in one }
    }

    mutating func make(_ id: String) throws {
        if authorities[id] != nil || leaves[id] != nil { return }
        let recipe = try recipe(id)
        for other in [recipe.issuer, recipe.sameKeyAs].compactMap(\.self) { try make(other) }
        let rsaNumber = rsaKeys[recipe.kind, default: 0]
        if recipe.key.hasPrefix("rsa"), recipe.sameKeyAs == nil { rsaKeys[recipe.kind] = rsaNumber + 1 }
        let options = try recipe.options(
            commonName: commonName(id), rsaNumber: rsaNumber, privateKeyPEM: try recipe.sameKeyAs.map { try key($0) })
        switch recipe.kind {
        case .root: authorities[id] = try TestAuthority(options)
        case .authority: authorities[id] = try authority(recipe.issuer ?? "").intermediate(options)
        case .leaf: leaves[id] = try issue(options, by: recipe.issuer ?? "")
        case .selfSignedLeaf: leaves[id] = try TestIdentity.selfSigned(options)
        }
    }

    private func recipe(_ id: String) throws -> TrustScenario.Recipe {
        guard let recipe = scenario.certificates[id] else { throw TrustScenarioFailure("“\(id)” is not described") }
        return recipe
    }

    /// The common name of the subject; the rest of the subject is always the same.
    private func commonName(_ id: String) throws -> String? {
        let recipe = try recipe(id)
        if let other = recipe.sameNameAs { return try commonName(other) }
        return recipe.isAuthority ? recipe.name ?? id : recipe.commonName
    }

    private func key(_ id: String) throws -> String {
        if let leaf = leaves[id] { return leaf.privateKeyPEM }
        return try authority(id).privateKeyPEM
    }

    private func authority(_ id: String) throws -> TestAuthority {
        guard let authority = authorities[id] else { throw TrustScenarioFailure("“\(id)” is not an authority") }
        return authority
    }

    private func issue(_ options: CertificateOptions, by id: String) throws -> TestIdentity {
        if let leaf = leaves[id] { return try leaf.issue(options) }
        return try authority(id).issue(options)
    }

    private func certificate(_ id: String) throws -> TestCertificate {
        try leaves[id]?.certificate ?? authority(id).certificate
    }

    func identity() throws -> TestIdentity {
        guard let first = scenario.served.first, let leaf = leaves[first] else {
            throw TrustScenarioFailure("the server has no certificate of its own")
        }
        return leaf.serving(intermediates: try scenario.served.dropFirst().map { try certificate($0) })
    }

    func list(_ list: TrustScenario.List) throws -> TestRevocationList {
        if let signer = list.signedBy, try key(signer) == key(list.issuer) {
            throw TrustScenarioFailure("the signer of the list of “\(list.issuer)” has the key of the issuer")
        }
        return try authority(list.issuer).revocationList(
            revoking: list.revokes.map { try certificate($0) }, thisUpdate: .seconds(list.thisUpdate * 3600),
            nextUpdate: .seconds(list.nextUpdate * 3600), signer: list.signedBy == nil ? .issuer : .forger)
    }

    func ocspResponse() throws -> [UInt8]? {
        guard let ocspResponse = scenario.ocspResponse else { return nil }
        let states: [String: TestAuthority.OCSPStatus] = ["good": .good, "revoked": .revoked, "unknown": .unknown]
        let signers: [String: TestAuthority.OCSPSigner] = [
            "issuer": .issuer, "delegate": .delegate, "delegateWithoutEKU": .delegateWithoutUsage,
            "stranger": .stranger,
        ]
        guard let status = states[ocspResponse.status], let signer = signers[ocspResponse.signer] else {
            throw TrustScenarioFailure("\(ocspResponse) cannot be stapled")
        }
        return try authority(ocspResponse.issuer).ocspResponse(
            for: certificate(ocspResponse.for), status: status, thisUpdate: .seconds(ocspResponse.thisUpdate * 3600),
            nextUpdate: .seconds(ocspResponse.nextUpdate * 3600), signer: signer)
    }
}
