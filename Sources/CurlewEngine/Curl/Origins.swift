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
    /// All origins, sorted by port, scheme and host.
    ///
    /// A dictionary would make the first request of a program slower, as described for `DescriptorMap`.
    ///
    /// The references are strong, because weak ones would make every use of an origin slower.
    private var known: [Origin] = []
    /// The number of origins at which unused ones are removed.
    private var most = 1024
    private let streamsPerConnection: Int

    init(streamsPerConnection: Int = 100) { self.streamsPerConnection = streamsPerConnection }

    /// Returns the parsed form of a URL and stores it in `target`; nil if libcurl rejects the URL.
    mutating func url(for target: PlannedURL) -> ParsedURL? {
        if let parsed = target.parsed { return parsed }
        target.parsed = ParsedURL(target.text, origin: origin(of: target))
        return target.parsed
    }

    private mutating func origin(of target: PlannedURL) -> Origin {
        let index = index(of: target)
        if index < known.count, Origins.isSame(known[index], target) { return known[index] }
        if known.count >= most { removeUnused() }
        let made = Origin(
            host: target.host, port: target.port, isSecure: target.isSecure,
            streamsPerConnection: streamsPerConnection)
        known.insert(made, at: self.index(of: target))
        return made
    }

    /// Returns the index of the origin of a URL, or the index at which to insert it.
    private func index(of target: PlannedURL) -> Int {
        var (low, high) = (0, known.count)
        while low < high {
            let middle = (low + high) / 2
            if Origins.isBefore(known[middle], target) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private static func isBefore(_ origin: Origin, _ target: PlannedURL) -> Bool {
        if origin.port != target.port { return origin.port < target.port }
        if origin.isSecure != target.isSecure { return target.isSecure }
        return origin.host < target.host
    }

    private static func isSame(_ origin: Origin, _ target: PlannedURL) -> Bool {
        origin.port == target.port && origin.isSecure == target.isSecure && origin.host == target.host
    }

    private mutating func removeUnused() {
        var kept: [Origin] = []
        for index in known.indices where !isKnownUniquelyReferenced(&known[index]) { kept.append(known[index]) }
        known = kept
        most = max(1024, 2 * kept.count)
    }
}
