// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Shows a name and a password to servers, in the way that each of them asks for: the loop around ``ProtectionSpaces``.
struct PasswordExchange: Sendable {
    /// What a server asks for and we can give.
    private enum Choice {
        case basic(realm: String)
        case digest(DigestChallenge)
    }

    /// Which schemes are answered, and where.
    struct Rules: Sendable, Hashable {
        /// Whether Basic is answered.
        var allowsBasic = false
        /// Whether it is also where others on the network can read it.
        var allowsPlainHTTP = false
        /// Whether bodies are part of the digest wherever the server takes that.
        var protectsBodies = false
    }

    /// How often in one attempt a server may call a nonce stale: those that let each be used once do so to requests that
    /// are sent at the same time.
    static let mostStale = 8
    /// From which length on bodies wait for the server's word while nothing is known of it: sending less twice is
    /// cheaper than waiting.
    private static let smallBody = ByteCount.kibibytes(64)

    let credential: DigestCredential
    let rules: Rules
    let spaces: ProtectionSpaces

    init(_ user: String, _ password: String, _ rules: Rules, spaces: ProtectionSpaces = ProtectionSpaces()) {
        credential = DigestCredential(user: user, password: password)
        self.rules = rules
        self.spaces = spaces
    }

    /// The response to a request with whatever proof it takes.
    ///
    /// - Parameter refusal: The response that asks for proof, if it has come already.
    func response(
        to request: Request, _ next: Next, after refusal: IncomingResponse? = nil
    ) async throws -> IncomingResponse {
        if request.saysWhoAsks {
            if let refusal { return refusal }
            return try await next(request)
        }
        try check(request)
        let target = try request.target()
        let place = ProtectedPlace(target)
        var proof = refusal == nil ? spaces.known(at: place) : nil
        var response: IncomingResponse
        if let refusal {
            response = refusal
        } else {
            response = try await next(try await showing(proof, request, target))
        }
        var answers = 0
        while true {
            guard response.head.status == .unauthorized else {
                if let proof { spaces.accepted(proof, at: place, next: response.head.nextNonce) }
                return response
            }
            guard let choice = choice(of: response.head.challenges),
                mayAnswer(choice, after: proof, answers)
            else {
                if let proof { spaces.refused(proof, at: place) }
                return response
            }
            if request.body.isSpent { return response }
            if case .basic = choice {
                try request.refusePlainHTTP(
                    for: "Basic credentials", unless: rules.allowsPlainHTTP,
                    option: ".password(…, allowsPlainHTTP: true)", askedBy: response.head)
            }
            answers += 1
            let answer = begin(choice, at: place)
            let repeated = try await showing(answer, request, target)
            await response.discard()
            proof = answer
            response = try await next(repeated)
        }
    }

    // MARK: Choosing

    /// The best that a response offers.
    private func choice(of challenges: [AuthenticationChallenge]) -> Choice? {
        if let digest = DigestChallenge.strongest(of: challenges) { return .digest(digest) }
        guard rules.allowsBasic, let basic = challenges.first(where: { $0.scheme == .basic }) else { return nil }
        return .basic(realm: basic.realm ?? "")
    }

    /// Whether what a server asks for after some proof is worth an answer.
    ///
    /// - Parameter answers: How many challenges were answered in this attempt; without one the proof was shown unasked.
    private func mayAnswer(_ choice: Choice, after proof: PasswordProof?, _ answers: Int) -> Bool {
        switch (proof, choice) {
        case (nil, _): true
        case (.digest(let turn), .digest(let challenge)) where challenge.nonce == turn.nonce: false
        case (.digest, .digest(let challenge)) where challenge.isStale: answers < Self.mostStale
        case (.basic(let old), .basic(let new)): answers == 0 && old != new
        default: answers == 0
        }
    }

    private func begin(_ choice: Choice, at place: ProtectedPlace) -> PasswordProof {
        switch choice {
        case .basic(let realm): spaces.beginBasic(realm, at: place)
        case .digest(let challenge): .digest(spaces.begin(challenge, at: place))
        }
    }

    // MARK: Showing

    /// The request with proof, or ready to be refused before its body is on the way.
    private func showing(
        _ proof: PasswordProof?, _ request: Request, _ target: RequestTarget
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
        case .digest(let turn): try await add(turn, to: &request, target)
        }
        return request
    }

    private func add(
        _ turn: DigestTurn, to request: inout Request, _ target: RequestTarget
    ) async throws(NetworkError) {
        let quality = try quality(turn.challenge, request)
        var hash = ""
        if quality == .integrity {
            // What is digested is what is sent.
            request.options.compression = .off
            hash = try await request.bodyDigest(turn.challenge.algorithm.digest)?.hexadecimal ?? ""
        }
        request.fields[.authorization] = credential.fieldValue(
            turn, quality, method: request.method.rawValue, uri: target.pathAndQuery, bodyHash: hash)
    }

    private func quality(
        _ challenge: DigestChallenge, _ request: Request
    ) throws(NetworkError) -> DigestTurn.Quality {
        if challenge.isLegacy { return .legacy }
        let canHash = request.body.canReplay
        if challenge.offersIntegrity, canHash, rules.protectsBodies || !challenge.offersAuth { return .integrity }
        if challenge.offersAuth { return .auth }
        throw NetworkError(
            .bodyNotReplayable, phase: .preparing,
            "The server wants a digest of the body before the body, which can be read only once.",
            hint: request.body.replayHint(or: "use a server that offers the quality “auth”"), request: request)
    }

    /// - Throws: `NetworkError` of kind `invalidRequest` for a name or a password that no scheme can express.
    private func check(_ request: Request) throws(NetworkError) {
        for (text, flaw) in [
            (credential.user, InvalidCredential.controlInUser), (credential.password, .controlInPassword),
        ] where text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
            throw .unusable(flaw, request)
        }
    }
}

extension PasswordExchange: CustomStringConvertible, CustomReflectable {
    /// Neither the name nor the password.
    var description: String { redaction }

    /// The description alone.
    var customMirror: Mirror { Mirror(self, children: ["description": redaction], displayStyle: .struct) }
}

extension ResponseHead {
    /// The nonce that a server wants next (RFC 7616 §3.5).
    ///
    /// What it says to prove itself (`rspauth`) is not looked at: whoever stands between could leave it out. TLS proves
    /// servers.
    fileprivate var nextNonce: String? {
        guard let info = self["Authentication-Info"],
            let nonce = ChallengeParser.parameters(in: info)["nextnonce"], HeaderFields.isValidValue(nonce)
        else { return nil }
        return nonce
    }
}

extension Request {
    /// Whether the caller has said who asks, which nobody then does for them.
    var saysWhoAsks: Bool {
        if fields.contains(.authorization) { return true }
        return urlText.utf8.contains(UInt8(ascii: "@")) && (try? target())?.userInfo != nil
    }
}

extension RequestTarget {
    /// The request target as it is on the wire (RFC 9112 §3.2.1).
    var pathAndQuery: String { query.map { "\(path)?\($0)" } ?? path }
}

extension Credential {
    /// Basic credentials for a request.
    /// - Throws: `NetworkError` of kind `invalidRequest`, with the ``InvalidCredential`` as its cause.
    static func basic(_ user: String, _ password: String, for request: Request) throws(NetworkError) -> Credential {
        do throws(InvalidCredential) {
            return try .basic(user, password)
        } catch {
            throw .unusable(error, request)
        }
    }
}

extension NetworkError {
    fileprivate static func unusable(_ flaw: InvalidCredential, _ request: Request) -> NetworkError {
        NetworkError(
            invalid: .credentials, "\(flaw)", hint: "Check the source of the name and password.",
            cause: flaw, request: request)
    }
}
