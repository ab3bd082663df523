// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewEngine
internal import CurlewSupport
internal import FoundationEssentials

/// The alternative services that a session knows; any thread may use them.
final class AlternativeServices: Sendable {
    private let table = Lock(AlternativeServiceTable())
    private let now: @Sendable () -> Date

    init(now: @escaping @Sendable () -> Date = { Date() }) { self.now = now }

    // MARK: Reading

    /// Returns the services of the server of a URL that have not expired; empty for an http or invalid URL.
    func services(of url: String) -> [Session.AlternativeService] {
        guard let origin = Self.origin(of: url) else { return [] }
        let now = now()
        return table.withLock { $0.services(of: origin, at: now) }
    }

    /// Whether the server of a URL offers HTTP/3 on the host and port of the URL.
    func offersHTTP3(_ url: PlannedURL) -> Bool {
        guard let origin = AlternativeServiceTable.Origin(host: url.host, port: url.port, isSecure: url.isSecure) else {
            return false
        }
        let now = now()
        return table.withLock { $0.offersHTTP3(origin, at: now) }
    }

    private static func origin(of url: String) -> AlternativeServiceTable.Origin? {
        guard let target = try? RequestTarget(url) else { return nil }
        return AlternativeServiceTable.Origin(
            host: target.host, port: target.port, isSecure: target.scheme == .https)
    }

    // MARK: Changing

    /// Stores the services of a response (RFC 7838 §3).
    ///
    /// - Parameters:
    ///   - head: The head of the response.
    ///   - url: The URL of the request.
    ///   - isAuthentic: Whether the server has proved its identity as a host; called only if the field is not repeated.
    func receive(_ head: ResponseHead, from url: String, isAuthentic: (String) -> Bool = { _ in true }) {
        // A server that is not responsible for the URL cannot announce services for it (RFC 7838 §6).
        guard let text = head[.altSvc], head.status != .misdirectedRequest, let origin = Self.origin(of: url) else {
            return
        }
        let now = now()
        guard !table.withLock({ $0.isRepeated(text, of: origin, at: now) }), isAuthentic(origin.host),
            let field = AlternativeServiceField(text)
        else { return }
        let age = CacheRules.ageValue(of: head.fields)
        table.withLock { $0.receive(field, text, from: origin, age: age, at: now) }
    }

    /// Removes the services that depend on the network, after a possible change of the network (RFC 7838 §2.2).
    func forgetNetworkSpecific() { table.withLock { $0.forgetNetworkSpecific() } }
}
