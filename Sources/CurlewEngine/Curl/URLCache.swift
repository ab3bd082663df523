// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// A URL parsed by libcurl, kept for requests that come again.
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

/// The parsed URLs last used, found by one hash and one comparison.
struct URLCache {
    private struct Entry {
        var text: String
        var url: ParsedURL
    }

    private struct OriginKey: Hashable {
        var host: String
        var port: UInt16
        var isSecure: Bool
    }

    private final class WeakOrigin {
        weak var origin: Origin?
        init(_ origin: Origin) { self.origin = origin }
    }

    private static let size = 256
    private let streamsPerConnection: Int
    private var entries = [Entry?](repeating: nil, count: size)
    private var origins: [OriginKey: WeakOrigin] = [:]

    init(streamsPerConnection: Int = 100) { self.streamsPerConnection = streamsPerConnection }

    mutating func url(for plan: TransferPlan) -> ParsedURL? {
        let slot = Int(truncatingIfNeeded: UInt(bitPattern: plan.url.hashValue) % UInt(URLCache.size))
        if let entry = entries[slot], entry.text == plan.url { return entry.url }
        guard let parsed = ParsedURL(plan.url, origin: origin(of: plan)) else { return nil }
        entries[slot] = Entry(text: plan.url, url: parsed)
        return parsed
    }

    private mutating func origin(of plan: TransferPlan) -> Origin {
        let key = OriginKey(host: plan.host, port: plan.port, isSecure: plan.isSecure)
        if let known = origins[key]?.origin { return known }
        if origins.count > 1024 { origins = origins.filter { $0.value.origin != nil } }
        let made = Origin(
            host: plan.host, port: plan.port, isSecure: plan.isSecure, streamsPerConnection: streamsPerConnection)
        origins[key] = WeakOrigin(made)
        return made
    }
}
