// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// A serializer that reads a response as an XML document.
///
/// ```swift
/// let feed = try await api.get("feed.xml", using: .xmlDocument)
/// print(try feed.string("/*/*[local-name() = 'title']"))
/// ```
public struct XMLDocumentSerializer: ResponseSerializer {
    private let limits: XMLLimits
    private let charset: String?

    /// Creates a serializer.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a document.
    public init(charset: String? = nil, limits: XMLLimits = XMLLimits()) {
        self.charset = charset
        self.limits = limits
    }

    /// `application/xml`, `text/xml` and all types with the suffix `+xml` (RFC 7303 §4.2).
    public var accepts: [MediaType] { .xml }

    /// Parses the body in parts; a lost connection may be retried, because the body is collected first.
    ///
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``, or the error of the transfer.
    public func output(from response: IncomingResponse) async throws -> XMLDocument {
        do {
            return try await XMLDocument(
                parsing: response.bytes, charset: charset ?? response.head.charset, limits: limits)
        } catch let error as XMLError {
            throw NetworkError(error)
        }
    }
}

extension ResponseSerializer where Self == XMLDocumentSerializer {
    /// A serializer that reads the body as an XML document.
    public static var xmlDocument: XMLDocumentSerializer { XMLDocumentSerializer() }

    /// Returns a serializer that reads the body as an XML document.
    ///
    /// - Parameters:
    ///   - charset: The encoding, which overrides the server's charset; only a byte order mark overrides it.
    ///   - limits: The limits for a document.
    public static func xmlDocument(
        charset: String? = nil, limits: XMLLimits = XMLLimits()
    ) -> XMLDocumentSerializer {
        XMLDocumentSerializer(charset: charset, limits: limits)
    }
}
