// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Serializers {
    /// Decodes the body as text.
    ///
    /// A byte order mark determines the encoding, else the charset of `Content-Type`, else `assuming`. An empty body is
    /// the empty text.
    ///
    /// ```swift
    /// let page = Serializers.Text(assuming: .windows1252, lossy: true)
    /// ```
    public struct Text: ResponseSerializer {
        private let assumed: TextEncoding
        private let isLossy: Bool

        /// Creates a serializer for text.
        ///
        /// - Parameters:
        ///   - assuming: The encoding when neither the body nor the server declares one.
        ///   - lossy: Whether invalid characters become U+FFFD instead of an error.
        public init(assuming: TextEncoding = .utf8, lossy: Bool = false) {
            assumed = assuming
            isLossy = lossy
        }

        /// Text, and with low priority any type, because every body can be read as text.
        public var accepts: [MediaType] { ["text/*", "*/*;q=0.1"] }

        /// Reads the whole body.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` when the charset is unknown or a byte is invalid in it,
        ///   `.unsupported` when its table is not installed, or the error that ended the transfer.
        public func output(from response: IncomingResponse) async throws -> String {
            let body = try await response.collect()
            do throws(NetworkError) {
                return try response.head.text(of: body, assuming: assumed, lossy: isLossy)
            } catch {
                throw error.with(request: response.request)
            }
        }
    }
}

extension ResponseSerializer where Self == Serializers.Text {
    /// Decodes the body as text; UTF-8 when neither the body nor the server declares an encoding.
    public static var text: Serializers.Text { Serializers.Text() }
}
