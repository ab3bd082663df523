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
    private struct Key: Hashable {
        var host: String
        var port: UInt16
        var isSecure: Bool
    }

    /// The references are strong, because weak ones would make every use of an origin slower.
    private var known: [Key: Origin] = [:]
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
        let key = Key(host: target.host, port: target.port, isSecure: target.isSecure)
        if let origin = known[key] { return origin }
        if known.count >= most { removeUnused() }
        let made = Origin(
            host: target.host, port: target.port, isSecure: target.isSecure,
            streamsPerConnection: streamsPerConnection)
        known[key] = made
        return made
    }

    private mutating func removeUnused() {
        var kept: [Key: Origin] = [:]
        while var entry = known.popFirst() {
            if !isKnownUniquelyReferenced(&entry.value) { kept[entry.key] = entry.value }
        }
        known = kept
        most = max(1024, 2 * kept.count)
    }
}
