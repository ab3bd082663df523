// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// A serializer that reads a response as an HTML page.
///
/// ```swift
/// let page = try await api.get("news", using: .html)
/// print(page.title ?? "", try page.string("//meta[@name = 'author']/@content"))
/// ```
public struct HTMLSerializer: ResponseSerializer {
    private let limits: XMLLimits
    private let charset: String?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a page.
    public init(charset: String? = nil, limits: XMLLimits = XMLLimits()) {
        self.charset = charset
        self.limits = limits
    }

    /// `text/html` and `application/xhtml+xml`.
    public var accepts: [MediaType] { ["text/html", "application/xhtml+xml"] }

    /// Parses the body in parts, in the encoding of its byte order mark, of the response's charset, or of its `<meta>`
    /// element.
    ///
    /// A lost connection may be retried, because the body is collected first.
    ///
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``, or the error of the transfer.
    public func output(from response: IncomingResponse) async throws -> HTMLDocument {
        do {
            return try await HTMLDocument(
                parsing: response.bytes, charset: charset ?? response.head.charset, limits: limits)
        } catch let error as XMLError {
            throw NetworkError(error, format: "HTML")
        }
    }
}

extension ResponseSerializer where Self == HTMLSerializer {
    /// A serializer that reads the body as an HTML page.
    public static var html: HTMLSerializer { HTMLSerializer() }

    /// Returns a serializer that reads the body as an HTML page.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a page.
    public static func html(charset: String? = nil, limits: XMLLimits = XMLLimits()) -> HTMLSerializer {
        HTMLSerializer(charset: charset, limits: limits)
    }
}
