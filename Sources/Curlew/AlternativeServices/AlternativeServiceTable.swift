// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// The alternative services of servers, as a pure value.
struct AlternativeServiceTable: Sendable {
    /// The https origin of a server.
    ///
    /// A response over http may come from any machine on the network, so http origins have no alternatives
    /// (RFC 7838 §2.1).
    struct Origin: Sendable, Hashable {
        /// The host in lower case, without brackets.
        let host: String
        let port: UInt16

        /// Creates an origin; nil for an http origin.
        init?(host: String, port: UInt16, isSecure: Bool) {
            guard isSecure else { return nil }
            (self.host, self.port) = (host, port)
        }
    }

    private struct Entry: Sendable {
        let services: [Session.AlternativeService]
        /// The value of the field.
        let text: String
        /// The time at which the field was parsed.
        let parsed: Date
        /// The number of seconds after `parsed` for which a repeated field has no effect.
        let quietTime: TimeInterval
        /// The time at which the last service expires.
        let expires: Date

        /// Creates an entry; nil without services.
        init?(_ services: [Session.AlternativeService], _ text: String, parsed: Date, isQuiet: Bool = true) {
            let expiries = services.map(\.expires)
            guard let first = expiries.min(), let last = expiries.max() else { return nil }
            (self.services, self.text, self.parsed, expires) = (services, text, parsed, last)
            let tenth = first.timeIntervalSince(parsed) / 10
            quietTime = isQuiet ? min(AlternativeServiceTable.longestQuietTime, tenth) : 0
        }
    }

    /// The maximum number of origins.
    static let maximum = 1000
    /// The maximum number of seconds for which a repeated field has no effect.
    private static let longestQuietTime: TimeInterval = 60

    private var entries: [Origin: Entry] = [:]

    var count: Int { entries.count }

    // MARK: Reading

    /// Returns the services that have not expired.
    func services(of origin: Origin, at now: Date) -> [Session.AlternativeService] {
        entries[origin]?.services.filter { $0.expires > now } ?? []
    }

    /// Whether a server offers HTTP/3 on its own host and port.
    func offersHTTP3(_ origin: Origin, at now: Date) -> Bool {
        entries[origin]?.services.contains {
            $0.protocolID == "h3" && $0.host == origin.host && $0.port == Int(origin.port) && $0.expires > now
        } ?? false
    }

    /// Whether a field repeats the last one of its origin so soon that it need not be parsed.
    ///
    /// Most responses of a server repeat the field. The quiet time is also at most a tenth of the shortest lifetime, so
    /// that a repeated field extends each service before it expires.
    func isRepeated(_ text: String, of origin: Origin, at now: Date) -> Bool {
        guard let entry = entries[origin] else { return false }
        return 0..<entry.quietTime ~= now.timeIntervalSince(entry.parsed) && entry.text == text
    }

    // MARK: Changing

    /// Replaces all services of an origin (RFC 7838 §3).
    ///
    /// - Parameters:
    ///   - field: The parsed field.
    ///   - text: The value of the field.
    ///   - age: The age of the response in seconds, which shortens the lifetimes (RFC 7838 §3.1).
    mutating func receive(
        _ field: AlternativeServiceField, _ text: String, from origin: Origin, age: Double, at now: Date
    ) {
        var services: [Session.AlternativeService] = []
        if case .alternatives(let alternatives) = field {
            services = alternatives.map { alternative in
                Session.AlternativeService(
                    protocolID: alternative.protocolID, host: alternative.host ?? origin.host,
                    port: Int(alternative.port), expires: now.addingTimeInterval(Double(alternative.maxAge) - age),
                    isPersistent: alternative.isPersistent)
            }
        }
        entries[origin] = Entry(services.filter { $0.expires > now }, text, parsed: now)
        if entries.count > Self.maximum { evict(keeping: origin) }
    }

    /// Removes the origin whose services expire first, but never the latest origin.
    private mutating func evict(keeping latest: Origin) {
        let first = entries.lazy.filter { $0.key != latest }.min { $0.value.expires < $1.value.expires }
        if let first { entries[first.key] = nil }
    }

    /// Removes the services that depend on the network: those without `persist` (RFC 7838 §2.2).
    mutating func forgetNetworkSpecific() {
        entries = entries.compactMapValues { entry in
            // The session must parse the next field, even if it repeats the last one.
            Entry(entry.services.filter(\.isPersistent), entry.text, parsed: entry.parsed, isQuiet: false)
        }
    }
}
