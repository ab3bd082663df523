// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport

/// Answers the challenges of HTTP proxies that forward requests, and converts refusals of these proxies to errors.
///
/// libcurl answers the challenges to CONNECT. For a forwarded request, libcurl would send the body before the proxy has
/// accepted the request, so this interceptor sends the request again instead.
struct ProxyInterceptor: FoldableInterceptor {
    /// The maximum number of stale nonces that one attempt accepts from a proxy.
    private static let maximumStaleNonces = 8

    let routes: RouteTable
    private let spaces = ProtectionSpaces()
    /// Has an entry after a proxy has accepted a digest.
    ///
    /// Later requests then send a digest in the first attempt.
    private let state = Revision()

    init(routes: RouteTable) { self.routes = routes }

    var isInnermost: Bool { true }
    var noticedFields: HeadFields { [] }
    var revision: Revision? { state }

    var plainInterest: ChainInterest? {
        var interest = ChainInterest()
        interest.statuses.insert(Status.proxyAuthenticationRequired.code)
        return interest
    }

    func interest(in request: Request) -> ChainInterest? { plainInterest }

    func mustRun(for request: Request) -> Bool { !state.isEmpty && digest(for: request) != nil }

    func intercept(_ request: Request, context: Interception.Context, next: Interception.Next) async throws
        -> IncomingResponse
    {
        var digest = digest(for: request)
        var proof: PasswordProof?
        if let digest, !context.isFirstAttemptSent { proof = spaces.useProof(for: digest.resource) }
        var response = try await next(try adding(proof, digest, to: request))
        var answers = 0
        while response.isRefusedByProxy {
            // A closure may have chosen another proxy for this attempt.
            let used = response.attempt?.engine.plan.target.proxyChoice?.proxy
            if used != digest?.proxy { (digest, proof) = (used.flatMap { self.digest($0) }, nil) }
            guard let digest, !request.body.isConsumed,
                let challenge = DigestChallenge.strongest(of: response.head.proxyChallenges),
                Self.shouldAnswer(challenge, after: proof, answers)
            else {
                if let proof, let digest { spaces.refused(proof, for: digest.resource) }
                throw await refusal(response, request, hasCredentials: digest != nil)
            }
            answers += 1
            proof = .digest(spaces.begin(challenge, for: digest.resource))
            let repeated = try adding(proof, digest, to: request)
            await response.discard()
            response = try await next(repeated)
        }
        if let proof, let digest {
            spaces.accepted(proof, for: digest.resource)
            if state.isEmpty { state.advance(entries: 1) }
        }
        return response
    }

    private static func shouldAnswer(_ challenge: DigestChallenge, after proof: PasswordProof?, _ answers: Int) -> Bool
    {
        guard case .digest(let use)? = proof else { return answers == 0 }
        if challenge.nonce == use.nonce { return false }
        return challenge.isStale ? answers < maximumStaleNonces : answers == 0
    }

    /// The credentials for a proxy that forwards a request and receives a digest.
    private struct Digest {
        let proxy: Proxy
        let credential: DigestCredential
        let resource: ProtectedResource
    }

    private func digest(for request: Request) -> Digest? {
        guard let target = try? request.target(), target.scheme == .http,
            let proxy = (try? routes.choice(for: request, target))?.proxy, routes.forwards(target, by: proxy)
        else { return nil }
        return digest(proxy)
    }

    private func digest(_ proxy: Proxy) -> Digest? {
        guard let credentials = proxy.credentials, credentials.isDigest else { return nil }
        return Digest(
            proxy: proxy, credential: DigestCredential(user: credentials.user, password: credentials.password),
            resource: ProtectedResource(origin: "\(credentials.user)@\(proxy.url)", path: "/"))
    }

    private func adding(_ proof: PasswordProof?, _ digest: Digest?, to request: Request) throws(NetworkError) -> Request
    {
        guard let digest, case .digest(let use)? = proof else { return request }
        let target = try request.target()
        let challenge = use.challenge
        let quality: NonceUse.Quality? = challenge.isLegacy ? .legacy : challenge.offersAuth ? .auth : nil
        let value = quality.flatMap {
            digest.credential.fieldValue(use, $0, method: request.method.rawValue, uri: target.pathAndQuery)
        }
        guard let value else {
            throw NetworkError(
                .proxyAuthenticationRequired, phase: .preparing,
                "The proxy requires a kind of digest that Curlew does not support.",
                hint: "Use Proxy.Credentials.basic with an https proxy.", request: request)
        }
        var request = request
        request.proxyProof = ProxyProof(value: value, proxy: digest.proxy)
        return request
    }

    private func refusal(
        _ response: IncomingResponse, _ request: Request, hasCredentials: Bool
    ) async -> NetworkError {
        let choice = response.attempt?.engine.plan.target.proxyChoice
        await response.discard()
        return NetworkError(
            proxyRefusal: response.head.status.code, of: choice, to: nil,
            offering: response.head.proxyChallenges.map(\.scheme), phase: .receiving, request: request,
            response: response.head)
    }
}

/// The proof of a password for one proxy, which no other proxy and no server may get.
struct ProxyProof: Sendable {
    let value: String
    let proxy: Proxy

    /// Returns the value of `Proxy-Authorization` for a request over the route of a URL; nil for another proxy.
    func fieldValue(for url: PlannedURL) -> String? {
        url.route?.forwards(isSecure: url.isSecure) == true && url.proxyChoice?.proxy == proxy ? value : nil
    }
}

extension IncomingResponse {
    /// Whether a proxy that forwards requests responded with 407.
    ///
    /// A 407 through a tunnel is a response of the server.
    fileprivate var isRefusedByProxy: Bool {
        guard head.status == .proxyAuthenticationRequired, let target = attempt?.engine.plan.target else {
            return false
        }
        return target.route?.forwards(isSecure: target.isSecure) == true
    }
}

extension ResponseHead {
    /// The challenges of `Proxy-Authenticate` (RFC 9110 §11.7.1).
    fileprivate var proxyChallenges: [ChallengeAuthentication.Challenge] {
        ChallengeParser.challenges(in: fields.values(for: .proxyAuthenticate))
    }
}

extension NetworkError {
    /// Creates the error of a proxy that refused a request.
    ///
    /// - Parameters:
    ///   - status: The status of the proxy's response.
    ///   - choice: The proxy and the reason for it.
    ///   - server: The host and the port of the tunnel; nil for a request that the proxy forwards.
    ///   - schemes: The schemes that a 407 offers, as far as they are known.
    init(
        proxyRefusal status: Int, of choice: Proxy.Choice?, to server: String?,
        offering schemes: [ChallengeAuthentication.Challenge.Scheme], phase: Phase, request: Request? = nil,
        response: ResponseHead? = nil
    ) {
        let name = choice.map { "The proxy \($0)" } ?? "The proxy"
        if status == 407 {
            let credentials = choice?.proxy?.credentials
            let hasCredentials = credentials != nil
            self.init(
                .proxyAuthenticationRequired, phase: phase,
                "\(name) \(hasCredentials ? "does not accept the credentials" : "requires credentials").",
                hint: Self.hint(offering: schemes, to: credentials), request: request,
                response: response)
        } else {
            self.init(
                status < 500 ? .proxyRefused : .cannotConnect, phase: phase,
                "\(name) did not open a tunnel\(server.map { " to \($0)" } ?? ""): status \(status).",
                hint: status < 500
                    ? "The proxy forbids this server or port; ask its operator, or add the host to no_proxy."
                    : "The proxy cannot reach the server; check the host and the port.",
                request: request, response: response)
        }
    }

    /// Returns the hint for a 407, which names at most eight schemes.
    private static func hint(
        offering schemes: [ChallengeAuthentication.Challenge.Scheme], to credentials: Proxy.Credentials?
    ) -> String {
        var names: [ChallengeAuthentication.Challenge.Scheme] = []
        for scheme in schemes where names.count < 8 && !names.contains(scheme) { names.append(scheme) }
        let offer =
            names.isEmpty ? "" : "The proxy offers \(names.map(\.description).joined(separator: ", ")). "
        let advice =
            if !schemes.isEmpty, !schemes.contains(.basic), !schemes.contains(.digest) {
                "Curlew supports only Basic, Digest and tokens in Proxy.fields; a local relay such as cntlm or px can "
                    + "add Negotiate and NTLM."
            } else if let credentials {
                switch (credentials.isDigest, schemes.contains(.digest), schemes.contains(.basic)) {
                case (false, true, false): "Use Proxy.Credentials.digest in place of .basic."
                case (true, false, true): "Use Proxy.Credentials.basic in place of .digest."
                default: "Check the name and the password for the proxy."
                }
            } else if schemes.contains(.digest), !schemes.contains(.basic) {
                "Set a name and a password, with Proxy(url, .digest(name, password)), or with Proxy.Policy.environment for "
                    + "the proxy of a variable."
            } else {
                "Set a name and a password, with Proxy(url, .basic(name, password)) or in the URL of the variable."
            }
        return offer + advice
    }
}
