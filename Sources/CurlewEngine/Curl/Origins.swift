// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// A URL parsed by libcurl, kept for later requests to the same URL.
final class ParsedURL {
    let handle: OpaquePointer
    let origin: Origin

    init?(_ text: String, origin: Origin) {
        guard let handle = curl_url() else { return nil }
        self.handle = handle
        self.origin = origin
        guard curl_url_set(handle, CURLUPART_URL, text, UInt32(CURLU_PATH_AS_IS)) == CURLUE_OK else { return nil }
    }

    deinit { curl_url_cleanup(handle) }
}

/// The origins in use; each one stays at least as long as a parsed URL or a socket refers to it.
struct Origins {
    /// All origins, sorted by port, scheme, route and host.
    ///
    /// A dictionary would make the first request of a program slower, as described for `DescriptorMap`.
    ///
    /// The references are strong, because weak ones would make every use of an origin slower.
    private var known: [Origin] = []
    /// The number of origins at which unused ones are removed.
    private var most = 1024
    private let streamsPerConnection: Int

    /// All origins that are kept, in their order.
    var all: [Origin] { known }

    init(streamsPerConnection: Int = 100) { self.streamsPerConnection = streamsPerConnection }

    /// Returns the parsed form of a URL and stores it in `target`; nil if libcurl rejects the URL.
    mutating func url(for target: PlannedURL) -> ParsedURL? {
        if let parsed = target.parsed { return parsed }
        target.parsed = ParsedURL(target.text, origin: origin(of: target))
        return target.parsed
    }

    /// The properties by which libcurl distinguishes servers.
    private struct Key: Comparable {
        let port: UInt16
        let isSecure: Bool
        /// The number of the route; 0 for the direct one.
        let route: UInt64
        let host: String

        init(_ target: PlannedURL) {
            route = target.route?.number ?? 0
            isSecure = target.isSecure
            if let route = target.route, route.forwards(isSecure: isSecure), let proxy = route.proxy {
                (host, port) = (proxy.host, proxy.port)
            } else {
                (host, port) = (target.host, target.port)
            }
        }

        init(_ origin: Origin) {
            (port, isSecure, host) = (origin.port, origin.isSecure, origin.host)
            route = origin.route?.number ?? 0
        }

        static func < (one: Key, other: Key) -> Bool {
            if one.port != other.port { return one.port < other.port }
            if one.isSecure != other.isSecure { return other.isSecure }
            if one.route != other.route { return one.route < other.route }
            return one.host < other.host
        }
    }

    private mutating func origin(of target: PlannedURL) -> Origin {
        let key = Key(target)
        let index = index(of: key)
        if index < known.count, Key(known[index]) == key { return known[index] }
        if known.count >= most { removeUnused() }
        let made = Origin(
            host: key.host, port: key.port, isSecure: key.isSecure, route: target.route,
            streamsPerConnection: streamsPerConnection)
        known.insert(made, at: self.index(of: key))
        return made
    }

    /// Returns the index of the origin with a key, or the index at which to insert it.
    private func index(of key: Key) -> Int {
        var (low, high) = (0, known.count)
        while low < high {
            let middle = (low + high) / 2
            if Key(known[middle]) < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private mutating func removeUnused() {
        var kept: [Origin] = []
        for index in known.indices where !isKnownUniquelyReferenced(&known[index]) { kept.append(known[index]) }
        known = kept
        most = max(1024, 2 * kept.count)
    }
}
