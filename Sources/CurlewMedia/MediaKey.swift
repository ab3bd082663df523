// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// The key of a file: a digest of the URL and of the request's own fields, so that neither is stored.
struct MediaKey: Sendable, Hashable {
    /// 64 hexadecimal digits.
    let text: String

    /// The fields that do not select the bytes of a response.
    private static let ignored: Set<HeaderName> = [
        .acceptEncoding, .userAgent, .referer, .cacheControl, "Pragma", "Traceparent", "Tracestate", "Priority", "DNT",
        "Connection", "Keep-Alive", "TE",
    ]
    /// The fields of which the cache sends its own values.
    private static let refused: [HeaderName] = [
        .range, .ifRange, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince,
    ]

    /// Creates the key of a request.
    ///
    /// - Throws: `.invalidRequest` for an invalid URL, another method than GET, a body, and a range or condition.
    init(_ request: Request) throws(NetworkError) {
        guard request.method == .get, request.body.isNone else {
            throw NetworkError(
                invalid: .method, "A media cache sends GET requests without a body.", request: request)
        }
        if let name = Self.refused.first(where: { request.fields.contains($0) }) {
            throw NetworkError(
                invalid: .field, "The request has the field \(name), which the media cache sets.",
                hint: "Remove it, and pass the range to bytes(_:).", request: request)
        }
        let target = try request.target()
        var parts = [CacheKey.url(of: target), target.userInfo ?? "", request.options.unixSocket ?? ""]
        parts += request.fields.filter { !Self.ignored.contains($0.name) }
            .map { "\($0.name.canonical):\($0.value)" }.sorted()
        // The length of each part keeps different lists of parts apart.
        text = CacheKey.digest(parts.map { "\($0.utf8.count) \($0)" }.joined(separator: "\n"))
    }

    /// Creates a key from 64 hexadecimal digits; nil for another text.
    init?(_ text: String) {
        guard text.utf8.count == 64, text.utf8.allSatisfy({ 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }) else {
            return nil
        }
        self.text = text
    }
}
