// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Proxy {
    /// The rule that selects the proxy of each request.
    ///
    /// ```swift
    /// let session = Session { $0.proxy = .none }
    /// request.options.proxy = .always(try Proxy("socks5h://127.0.0.1:1080"))
    /// ```
    public struct Policy: Sendable, Hashable {
        enum Rule: Sendable, Hashable {
            case inherited
            case environment
            case changedEnvironment(IdentifiedClosure<@Sendable (inout Proxy) -> Void>)
            case none
            case always(Proxy, except: ProxyExceptions)
            case custom(IdentifiedClosure<@Sendable (Request) throws -> Proxy?>)
        }

        let rule: Rule

        /// Uses the proxies in the environment, with curl's rules; the default of sessions.
        ///
        /// `https_proxy` names the proxy for https requests, and `http_proxy` names the proxy for requests without TLS.
        /// If the variable of a request is unset, `all_proxy` is used. `no_proxy` lists the servers that requests reach
        /// directly; ``always(_:except:)`` describes the entries. The names may be in upper case, except for
        /// `HTTP_PROXY`: a web server sets that variable from a field of a request to a CGI program. A variable in
        /// lower case takes precedence.
        ///
        /// The session reads the variables once, when it is created. A set-user-ID program ignores the variables. An
        /// invalid URL in a variable fails every request that uses the variable.
        public static let environment = Policy(rule: .environment)

        /// Uses the proxies in the environment like ``environment``, and changes each proxy with a closure.
        ///
        /// A variable cannot contain the trust, the identity or the fields of a proxy. The closure sets them, and can
        /// also set the credentials. Two calls of this method return policies that are not equal. Such a policy cannot
        /// be encoded.
        ///
        /// ```swift
        /// let roots = try CustomRoots(pem: ours)
        /// let session = Session { $0.proxy = .environment { $0.trust = roots } }
        /// ```
        /// - Parameter change: Changes the proxy that a variable names, before a request uses it. The closure runs at
        ///   least once for each attempt through a proxy, in the task that sends the request, so it must be fast.
        ///   Requests share connections only if the closure sets equal values, so create evaluators outside it.
        public static func environment(_ change: @escaping @Sendable (inout Proxy) -> Void) -> Policy {
            Policy(rule: .changedEnvironment(IdentifiedClosure(change)))
        }

        /// The rule of the session: the default of requests; in the configuration of a session the same as
        /// ``environment``.
        public static let inherited = Policy(rule: .inherited)

        /// Sends every request directly to its server, and ignores the environment.
        public static let none = Policy(rule: .none)

        /// Sends every request through one proxy, with exceptions.
        ///
        /// - Parameters:
        ///   - proxy: The proxy.
        ///   - exceptions: The servers that requests reach directly, separated by commas or blanks; empty by default.
        ///     `*` covers all servers. `example.com` covers the host and all its subdomains. `192.0.2.7` and `[::1]`
        ///     cover one address, and `10.0.0.0/8` and `2001:db8::/32` cover the addresses of a network; host names are
        ///     not looked up. A port, as in `example.com:8080`, restricts an entry to this port.
        public static func always(_ proxy: Proxy, except exceptions: String = "") -> Policy {
            Policy(rule: .always(proxy, except: ProxyExceptions(exceptions)))
        }

        /// Selects the proxy of each request by a closure.
        ///
        /// The policies that two calls of this method return are never equal. A custom policy cannot be encoded. The
        /// closure also selects the proxy of redirects and retries.
        /// - Parameter choose: Returns the proxy of a request; nil to reach the server directly. The closure runs at
        ///   least once for each attempt, in the task that sends the request, so it must be fast. If the closure throws
        ///   a `NetworkError`, the request fails with it; any other error fails the request with `.interceptorFailed`.
        public static func custom(_ choose: @escaping @Sendable (Request) throws -> Proxy?) -> Policy {
            Policy(rule: .custom(IdentifiedClosure(choose)))
        }

        /// The proxy of an `always` policy; nil for other policies.
        var namedProxy: Proxy? { if case .always(let proxy, _) = rule { proxy } else { nil } }

        /// Returns the proxy of a request and the reason; nil when no rule applies to the request.
        ///
        /// - Throws: `NetworkError` of kind `invalidRequest` for an invalid variable, a `NetworkError` of the closure,
        ///   and `interceptorFailed` for any other error of the closure.
        func choice(
            for request: Request, _ target: RequestTarget, _ environment: ProxyEnvironment
        ) throws(NetworkError) -> Choice? {
            switch rule {
            case .none: return nil
            case .environment, .inherited: return try environment.choice(for: target)
            case .changedEnvironment(let closure):
                guard let choice = try environment.choice(for: target) else { return nil }
                guard var proxy = choice.proxy else { return choice }
                closure.body(&proxy)
                return Choice(proxy: proxy, reason: choice.reason)
            case .always(let proxy, let exceptions):
                if let entry = exceptions.entry(for: target.host, port: target.port) {
                    return Choice(proxy: nil, reason: .exception(entry, in: "except"))
                }
                return Choice(proxy: proxy, reason: .policy)
            case .custom(let closure):
                do {
                    return Choice(proxy: try closure.body(request), reason: .closure)
                } catch let error as NetworkError {
                    throw error
                } catch {
                    throw NetworkError(
                        .interceptorFailed, phase: .preparing, "The proxy closure threw \(type(of: error)).",
                        cause: error, request: request)
                }
            }
        }
    }
}

extension Proxy.Policy: CustomStringConvertible {
    /// The rule, such as "environment", without credentials.
    public var description: String {
        switch rule {
        case .inherited: "inherited"
        case .environment: "environment"
        case .changedEnvironment: "environment, changed by a closure"
        case .none: "none"
        case .always(let proxy, let exceptions):
            exceptions.text.isEmpty ? proxy.url : "\(proxy.url), except \(exceptions.text.escapingControls)"
        case .custom: "custom"
        }
    }
}

extension Proxy.Policy: Codable {
    enum CodingKeys: CodingKey, CaseIterable {
        case url, except, tunnelsPlainHTTP
    }

    /// Decodes "environment", "none", the URL of a proxy, or an object with the members `url`, `except` and
    /// `tunnelsPlainHTTP`.
    ///
    /// Only `url` is required.
    /// - Throws: `DecodingError.dataCorrupted` for an invalid URL, and for a URL with credentials.
    public init(from decoder: any Decoder) throws {
        if let text = try? decoder.singleValueContainer().decode(String.self) {
            switch text {
            case "inherited": self = .inherited
            case "environment": self = .environment
            case "none": self = .none
            default: self = .always(try Self.proxy(text, decoder.codingPath))
            }
            return
        }
        let container = try decoder.container(keyedBy: CodingKeys.self)
        var proxy = try Self.proxy(
            try container.decode(String.self, forKey: .url), decoder.codingPath + [CodingKeys.url])
        proxy.tunnelsPlainHTTP = try container.decodeIfPresent(Bool.self, forKey: .tunnelsPlainHTTP) ?? false
        self = .always(proxy, except: try container.decodeIfPresent(String.self, forKey: .except) ?? "")
    }

    private static func proxy(_ url: String, _ path: [any CodingKey]) throws -> Proxy {
        func corrupt(_ text: String) -> DecodingError {
            .dataCorrupted(DecodingError.Context(codingPath: path, debugDescription: text))
        }
        let parsed: ProxyURL
        do throws(ProxyURL.Flaw) { parsed = try ProxyURL(url) } catch { throw corrupt("Invalid URL: \(error).") }
        guard parsed.user == nil else {
            throw corrupt("Settings must not contain the credentials of a proxy; set them in code.")
        }
        return Proxy(parsed)
    }

    /// Encodes a value that `init(from:)` decodes, without the credentials, fields, evaluator and identity of the
    /// proxy.
    /// - Throws: `EncodingError.invalidValue` for a policy with a closure, and the errors of the encoder.
    public func encode(to encoder: any Encoder) throws {
        switch rule {
        case .environment, .none, .inherited:
            var container = encoder.singleValueContainer()
            try container.encode(description)
        case .always(let proxy, let exceptions):
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(proxy.url, forKey: .url)
            if !exceptions.text.isEmpty { try container.encode(exceptions.text, forKey: .except) }
            if proxy.tunnelsPlainHTTP { try container.encode(true, forKey: .tunnelsPlainHTTP) }
        case .custom, .changedEnvironment:
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "The proxy policy has a closure, which cannot be encoded."))
        }
    }
}
