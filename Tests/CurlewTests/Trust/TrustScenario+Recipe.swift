// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

extension TrustScenario {
    /// The description of one certificate.
    struct Recipe: Decodable, Sendable {
        enum Kind: String, Decodable, Sendable {
            case root, authority, leaf, selfSignedLeaf
        }

        enum CodingKeys: String, CodingKey, CaseIterable {
            case kind, issuer, name, commonName, key, digest, validity, hosts, addresses, emails, uris, manyHosts
            case subjectAltNameDER, eku, keyUsage, ca, pathLength, permitted, excluded, sameKeyAs, sameNameAs
            case unknownCritical, keyIdentifiers
        }

        let kind: Kind
        let issuer: String?
        let name: String?
        let commonName: String?
        let key: String
        let digest: String
        /// The start and the end of the validity, in hours from now.
        let validity: [Int]
        let names: [CertificateOptions.AlternativeName]
        /// The value of the subject alternative name extension, in hex.
        let subjectAltNameDER: String?
        let eku: [String]?
        let keyUsage: [String]?
        let basicConstraints: CertificateOptions.BasicConstraints
        let pathLength: Int?
        let permitted: [String]
        let excluded: [String]
        let sameKeyAs: String?
        let sameNameAs: String?
        let hasUnknownCritical: Bool
        let hasKeyIdentifiers: Bool

        var isAuthority: Bool { kind == .root || kind == .authority }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            func texts(_ key: CodingKeys) throws -> [String] {
                try container.decodeIfPresent([String].self, forKey: key) ?? []
            }
            kind = try container.decode(Kind.self, forKey: .kind)
            issuer = try container.decodeIfPresent(String.self, forKey: .issuer)
            name = try container.decodeIfPresent(String.self, forKey: .name)
            commonName = try container.decodeIfPresent(String.self, forKey: .commonName)
            key = try container.decodeIfPresent(String.self, forKey: .key) ?? "p256"
            digest = try container.decodeIfPresent(String.self, forKey: .digest) ?? "sha256"
            validity = try container.decodeIfPresent([Int].self, forKey: .validity) ?? [-1, 24]
            var names: [CertificateOptions.AlternativeName] = []
            let count = try container.decodeIfPresent(Int.self, forKey: .manyHosts) ?? 0
            for number in 0..<count { names.append(.dns("host-\(number + 1).example.test")) }
            for text in try texts(.hosts) { names.append(.dns(text)) }
            for text in try texts(.addresses) { names.append(.ip(text)) }
            for text in try texts(.emails) { names.append(.email(text)) }
            for text in try texts(.uris) { names.append(.uri(text)) }
            self.names = names
            subjectAltNameDER = try container.decodeIfPresent(String.self, forKey: .subjectAltNameDER)
            eku = try container.decodeIfPresent([String].self, forKey: .eku)
            keyUsage = try container.decodeIfPresent([String].self, forKey: .keyUsage)
            basicConstraints = try Self.basicConstraints(container)
            pathLength = try container.decodeIfPresent(Int.self, forKey: .pathLength)
            permitted = try texts(.permitted)
            excluded = try texts(.excluded)
            sameKeyAs = try container.decodeIfPresent(String.self, forKey: .sameKeyAs)
            sameNameAs = try container.decodeIfPresent(String.self, forKey: .sameNameAs)
            hasUnknownCritical = try container.decodeIfPresent(Bool.self, forKey: .unknownCritical) ?? false
            hasKeyIdentifiers = try container.decodeIfPresent(Bool.self, forKey: .keyIdentifiers) ?? true
        }

        /// Reads the member `ca`, where `null` differs from an absent member.
        private static func basicConstraints(
            _ container: KeyedDecodingContainer<CodingKeys>
        ) throws -> CertificateOptions.BasicConstraints {
            if !container.contains(.ca) { return .byRole }
            if try container.decodeNil(forKey: .ca) { return .absent }
            return try container.decode(Bool.self, forKey: .ca) ? .authority : .notAuthority
        }
    }
}

extension TrustScenario.Recipe {
    /// The options for `TestAuthority`.
    ///
    /// - Parameters:
    ///   - commonName: The common name of the subject, if any.
    ///   - rsaNumber: Distinguishes the RSA keys of one scenario.
    ///   - privateKeyPEM: The key of another certificate, to be reused.
    func options(commonName: String?, rsaNumber: Int, privateKeyPEM: String?) throws -> CertificateOptions {
        var options = CertificateOptions(commonName: commonName, hosts: [], alternativeNames: names)
        guard validity.count == 2 else { throw TrustScenarioFailure("\(validity) is not a valid range") }
        options.validity = CertificateValidity(
            notBefore: .seconds(validity[0] * 3600), notAfter: .seconds(validity[1] * 3600))
        options.key = try testKey(rsaNumber)
        options.privateKeyPEM = privateKeyPEM
        options.digest = try known(Self.digests[digest], digest)
        options.basicConstraints = basicConstraints
        options.pathLength = pathLength
        options.keyUsages = try keyUsage?.map { try known(CertificateOptions.KeyUsage(rawValue: $0), $0) }
        options.extendedKeyUsages = eku?.map { CertificateOptions.ExtendedKeyUsage($0) }
        options.permittedNames = try permitted.map(constraint)
        options.excludedNames = try excluded.map(constraint)
        if let hex = subjectAltNameDER {
            options.extensions.append(CertificateOptions.Extension("2.5.29.17", value: try bytes(ofHex: hex)))
        }
        options.hasKeyIdentifiers = hasKeyIdentifiers
        if hasUnknownCritical { options.extensions.append(Self.unknownCritical) }
        return options
    }

    private static let unknownCritical = CertificateOptions.Extension("1.3.6.1.4.1.55555.1", isCritical: true)

    private static let digests: [String: SignatureDigest] = [
        "md5": .md5, "sha1": .sha1, "sha256": .sha256, "sha384": .sha384, "sha512": .sha512,
    ]

    private func testKey(_ number: Int) throws -> TestKey {
        switch key {
        case "p256": return .p256
        case "p384": return .p384
        case "ed25519": return .ed25519
        default:
            guard key.hasPrefix("rsa"), let bits = Int(key.dropFirst(3)) else {
                throw TrustScenarioFailure("“\(key)” is not a known key type")
            }
            return .rsa(bits, number: number)
        }
    }

    private func constraint(_ text: String) throws -> CertificateOptions.AlternativeName {
        if text.hasPrefix("DNS:") { return .dns(String(text.dropFirst(4))) }
        if text.hasPrefix("IP:") { return .ip(String(text.dropFirst(3))) }
        throw TrustScenarioFailure("“\(text)” is not a name constraint")
    }

    private func known<Value>(_ value: Value?, _ text: String) throws -> Value {
        guard let value else { throw TrustScenarioFailure("“\(text)” is unknown") }
        return value
    }
}

private func bytes(ofHex text: String) throws -> [UInt8] {
    let digits = Array(text)
    return try stride(from: 0, to: digits.count - 1, by: 2).map { place in
        guard let byte = UInt8(String(digits[place...place + 1]), radix: 16) else {
            throw TrustScenarioFailure("“\(text)” is not hexadecimal")
        }
        return byte
    }
}
