// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine

/// The environment variables that name the proxies of a process, read once.
///
/// `https_proxy` names the proxy for https requests, and `http_proxy` names the proxy for requests without TLS. If the
/// variable of a request is unset, `all_proxy` is used. `no_proxy` lists the exceptions. Each name may be in upper
/// case, except for `HTTP_PROXY`: a client of a CGI program can set that variable by a field (RFC 3875 §4.1.18). A name
/// in lower case takes precedence, and an empty value counts as unset.
struct ProxyEnvironment: Sendable, Hashable {
    /// The proxy in a variable.
    struct Variable: Sendable, Hashable {
        let name: String
        let proxy: Result<Proxy, ProxyURL.Flaw>
    }

    private let secure: Variable?
    private let plain: Variable?
    private let exceptions: ProxyExceptions
    private let exceptionsName: String

    /// - Parameter value: Returns the value of a variable; nil when the variable is unset.
    init(_ value: (String) -> String?) {
        func first(_ names: [String]) -> (name: String, value: String)? {
            for name in names { if let value = value(name), !value.isEmpty { return (name, value) } }
            return nil
        }
        func variable(_ names: [String]) -> Variable? {
            guard let (name, value) = first(names) else { return nil }
            do throws(ProxyURL.Flaw) {
                return Variable(name: name, proxy: .success(Proxy(try ProxyURL(value))))
            } catch {
                return Variable(name: name, proxy: .failure(error))
            }
        }
        let all = variable(["all_proxy", "ALL_PROXY"])
        secure = variable(["https_proxy", "HTTPS_PROXY"]) ?? all
        plain = variable(["http_proxy"]) ?? all
        let list = first(["no_proxy", "NO_PROXY"])
        exceptions = ProxyExceptions(list?.value ?? "")
        exceptionsName = list?.name ?? "no_proxy"
    }

    /// The variables of this process; empty in a set-user-ID program.
    static var current: ProxyEnvironment { ProxyEnvironment(TrustEnvironment.variable) }

    /// Whether no variable names a proxy.
    var isEmpty: Bool { secure == nil && plain == nil }

    /// Returns the proxy for a server; nil when the variables for its scheme are unset.
    /// - Throws: `NetworkError` of kind `invalidRequest` when the variable has an invalid URL.
    func choice(for target: RequestTarget) throws(NetworkError) -> Proxy.Choice? {
        guard let variable = target.scheme == .https ? secure : plain else { return nil }
        if let entry = exceptions.entry(for: target.host, port: target.port) {
            return Proxy.Choice(proxy: nil, reason: .exception(entry, in: exceptionsName))
        }
        switch variable.proxy {
        case .success(let proxy): return Proxy.Choice(proxy: proxy, reason: .variable(variable.name))
        case .failure(let flaw):
            throw NetworkError(
                invalid: .configuration,
                "The proxy in the environment variable \(variable.name) is not valid: \(flaw).",
                hint: "Correct or unset the variable, or set the session's proxy to .none.")
        }
    }
}
