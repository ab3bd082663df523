// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Sends a name and a password in the scheme that each server requires; the loop around ``ProtectionSpaces``.
struct PasswordExchange: Sendable {
    /// A challenge that this client can meet.
    private enum Choice {
        case basic(realm: String)
        case digest(DigestChallenge)
    }

    /// The schemes that are used, and the conditions for them.
    struct Rules: Sendable, Hashable {
        /// Whether Basic credentials may be sent.
        var allowsBasic = false
        /// Whether Basic credentials may also be sent without TLS, where others on the network can read them.
        var allowsPlainHTTP = false
        /// Whether the digest covers the body wherever the server supports that.
        var protectsBodies = false
    }

    /// The maximum number of times that a server may call a nonce stale in one attempt.
    ///
    /// A server that allows one use of each nonce calls it stale when requests are sent at the same time.
    static let maximumStaleNonces = 8
    /// The length from which on a body waits for the server's response while nothing is known about the server.
    ///
    /// To send a smaller body twice is cheaper than to wait.
    private static let smallBody = ByteCount.kibibytes(64)

    let credential: DigestCredential
    let rules: Rules
    let spaces: ProtectionSpaces

    init(_ user: String, _ password: String, _ rules: Rules, spaces: ProtectionSpaces = ProtectionSpaces()) {
        credential = DigestCredential(user: user, password: password)
        self.rules = rules
        self.spaces = spaces
    }

    /// Returns the response to a request, sent with the credentials that the server requires.
    ///
    /// - Parameter refusal: The response that requires credentials, if it has already arrived.
    func response(
        to request: Request, _ next: Interception.Next, after refusal: IncomingResponse? = nil
    ) async throws -> IncomingResponse {
        if request.hasOwnCredentials {
            if let refusal { return refusal }
            return try await next(request)
        }
        try check(request)
        let target = try request.target()
        let resource = ProtectedResource(target)
        var proof = refusal == nil ? spaces.useProof(for: resource) : nil
        var response: IncomingResponse
        if let refusal {
            response = refusal
        } else {
            response = try await next(try await adding(proof: proof, to: request, target))
        }
        var responses = 0
        while true {
            guard response.head.status == .unauthorized else {
                if let proof { spaces.accepted(proof, for: resource, next: response.head.nextNonce) }
                return response
            }
            guard let choice = choice(of: response.head.challenges),
                shouldRespond(choice, after: proof, responses)
            else {
                if let proof { spaces.refused(proof, for: resource) }
                return response
            }
            if request.body.isConsumed { return response }
            if case .basic = choice {
                try request.refusePlainHTTP(
                    for: "Basic credentials", unless: rules.allowsPlainHTTP,
                    option: ".password(…, allowsPlainHTTP: true)", askedBy: response.head)
            }
            responses += 1
            proof = begin(choice, for: resource)
            let repeated = try await adding(proof: proof, to: request, target)
            await response.discard()
            response = try await next(repeated)
        }
    }

    // MARK: Choosing

    /// Returns the strongest challenge of a response that this client can meet.
    private func choice(of challenges: [ChallengeAuthentication.Challenge]) -> Choice? {
        if let digest = DigestChallenge.strongest(of: challenges) { return .digest(digest) }
        guard rules.allowsBasic, let basic = challenges.first(where: { $0.scheme == .basic }) else { return nil }
        return .basic(realm: basic.realm ?? "")
    }

    /// Returns whether the exchange responds to a challenge that arrives after some proof was sent.
    ///
    /// - Parameter responses: The number of challenges that this attempt has already responded to. Zero after a proof
    ///   was sent means that the proof was sent without a challenge.
    private func shouldRespond(_ choice: Choice, after proof: PasswordProof?, _ responses: Int) -> Bool {
        switch (proof, choice) {
        case (nil, _): true
        case (.digest(let nonceUse), .digest(let challenge)) where challenge.nonce == nonceUse.nonce: false
        case (.digest, .digest(let challenge)) where challenge.isStale: responses < Self.maximumStaleNonces
        case (.basic(let old), .basic(let new)): responses == 0 && old != new
        default: responses == 0
        }
    }

    private func begin(_ choice: Choice, for resource: ProtectedResource) -> PasswordProof {
        switch choice {
        case .basic(let realm): spaces.beginBasic(realm, for: resource)
        case .digest(let challenge): .digest(spaces.begin(challenge, for: resource))
        }
    }

    // MARK: Adding credentials

    /// Returns the request with its proof, or prepared so that the server can refuse it before its body is sent.
    private func adding(
        proof: PasswordProof?, to request: Request, _ target: RequestTarget
    ) async throws(NetworkError) -> Request {
        var request = request
        if !request.body.isNone, request.options.expectContinue == nil {
            if !request.body.canReplay {
                request.options.expectContinue = .always
            } else if proof == nil {
                request.options.expectContinue = .above(Self.smallBody)
            }
        }
        switch proof {
        case nil: break
        case .basic:
            request.fields[.authorization] =
                try Credential.basic(credential.user, credential.password, for: request).fieldValue
        case .digest(let nonceUse): try await add(nonceUse, to: &request, target)
        }
        return request
    }

    private func add(
        _ nonceUse: NonceUse, to request: inout Request, _ target: RequestTarget
    ) async throws(NetworkError) {
        let quality = try quality(nonceUse.challenge, request)
        var hash = ""
        if quality == .integrity {
            // The digest has to cover exactly the bytes that are sent.
            request.options.compression = .off
            hash = try await request.bodyDigest(nonceUse.challenge.algorithm.digest)?.hexadecimal ?? ""
        }
        request.fields[.authorization] = credential.fieldValue(
            nonceUse, quality, method: request.method.rawValue, uri: target.pathAndQuery, bodyHash: hash)
    }

    private func quality(
        _ challenge: DigestChallenge, _ request: Request
    ) throws(NetworkError) -> NonceUse.Quality {
        if challenge.isLegacy { return .legacy }
        let canHash = request.body.canReplay
        if challenge.offersIntegrity, canHash, rules.protectsBodies || !challenge.offersAuth { return .integrity }
        if challenge.offersAuth { return .auth }
        throw NetworkError(
            .bodyNotReplayable, phase: .preparing,
            "The server requires a digest of the body before the body, which can be read only once.",
            hint: request.body.replayHint(or: "use a server that offers the quality “auth”"), request: request)
    }

    /// - Throws: `NetworkError` of kind `invalidRequest` for a name or a password that no scheme can express.
    private func check(_ request: Request) throws(NetworkError) {
        for (text, flaw) in [
            (credential.user, Credential.Invalid.controlInUser), (credential.password, .controlInPassword),
        ] where text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            throw .unusable(flaw, request)
        }
    }
}

extension PasswordExchange: CustomStringConvertible, CustomReflectable {
    /// "<redacted>", without the name and the password.
    var description: String { redaction }

    /// The description alone.
    var customMirror: Mirror { Mirror(self, children: ["description": redaction], displayStyle: .struct) }
}

extension ResponseHead {
    /// The nonce for the next request (RFC 7616 §3.5).
    ///
    /// The server's own proof in that field (`rspauth`) is ignored: an attacker between client and server could remove
    /// it. TLS authenticates servers.
    fileprivate var nextNonce: String? {
        guard let info = self["Authentication-Info"],
            let nonce = ChallengeParser.parameters(in: info)["nextnonce"], HeaderFields.isValidValue(nonce)
        else { return nil }
        return nonce
    }
}

extension Request {
    /// Whether the request has credentials of its own, in an `Authorization` field or in its URL; authenticators add
    /// nothing to such a request.
    var hasOwnCredentials: Bool {
        if fields.contains(.authorization) { return true }
        return url.utf8.contains(UInt8(ascii: "@")) && (try? target())?.userInfo != nil
    }
}

extension RequestTarget {
    /// The request target as it is sent (RFC 9112 §3.2.1).
    var pathAndQuery: String { query.map { "\(path)?\($0)" } ?? path }
}

extension Credential {
    /// Returns Basic credentials for a request.
    /// - Throws: `NetworkError` of kind `invalidRequest`, with the ``Credential/Invalid`` as its cause.
    static func basic(_ user: String, _ password: String, for request: Request) throws(NetworkError) -> Credential {
        do throws(Credential.Invalid) {
            return try .basic(user, password)
        } catch {
            throw .unusable(error, request)
        }
    }
}

extension NetworkError {
    fileprivate static func unusable(_ flaw: Credential.Invalid, _ request: Request) -> NetworkError {
        NetworkError(
            invalid: .credentials, "\(flaw)", hint: "Check the source of the name and password.",
            cause: flaw, request: request)
    }
}
