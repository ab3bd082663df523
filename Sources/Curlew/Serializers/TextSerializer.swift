// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the body as text, in the encoding it says itself or the server says for it.
///
/// A byte order mark decides, then the charset of `Content-Type`, then `assuming`. An empty body is the empty text.
///
/// ```swift
/// let page = TextSerializer(assuming: .windows1252, lossy: true)
/// ```
public struct TextSerializer: ResponseSerializer {
    private let assumed: TextEncoding
    private let isLossy: Bool

    /// Reads text.
    ///
    /// - Parameters:
    ///   - assuming: The encoding when nobody names one.
    ///   - lossy: Whether what is no character becomes U+FFFD instead of an error.
    public init(assuming: TextEncoding = .utf8, lossy: Bool = false) {
        assumed = assuming
        isLossy = lossy
    }

    /// Text, and anything else, since every body can be read as text.
    public var accepts: [MediaType] { ["text/*", "*/*;q=0.1"] }

    /// Reads the whole body.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` when the charset is unknown or a byte is no character of it,
    ///   `.unsupported` when its table is not installed, or whatever ended the transfer.
    public func output(from response: IncomingResponse) async throws -> String {
        let body = try await response.collect()
        do throws(NetworkError) {
            return try response.head.text(of: body, assuming: assumed, lossy: isLossy)
        } catch {
            throw error.with(request: response.request)
        }
    }
}

extension ResponseSerializer where Self == TextSerializer {
    /// The body as text; UTF-8 when nobody says otherwise.
    public static var text: TextSerializer { TextSerializer() }
}
