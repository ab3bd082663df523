// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import Curlew

/// Reads a response as an XML document.
///
/// ```swift
/// let feed = try await api.get("feed.xml", using: .xmlDocument)
/// print(try feed.string("/*/*[local-name() = 'title']"))
/// ```
public struct XMLDocumentSerializer: ResponseSerializer {
    private let limits: XMLLimits
    private let charset: String?

    /// Reads documents.
    ///
    /// - Parameters:
    ///   - charset: The encoding, instead of what the server says; only a byte order mark says more.
    ///   - limits: What a document may ask for.
    public init(charset: String? = nil, limits: XMLLimits = XMLLimits()) {
        self.charset = charset
        self.limits = limits
    }

    /// `application/xml`, `text/xml`, and what is named as XML (`+xml`, RFC 7303 §4.2).
    public var accepts: [MediaType] { .xml }

    /// Parses the body while it arrives.
    ///
    /// - Throws: `NetworkError` of kind `.decodingFailed` whose cause is an ``XMLError``, or whatever ended the transfer.
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
    /// The body as an XML document.
    public static var xmlDocument: XMLDocumentSerializer { XMLDocumentSerializer() }

    /// The body as an XML document.
    ///
    /// - Parameters:
    ///   - charset: The encoding, instead of what the server says; only a byte order mark says more.
    ///   - limits: What a document may ask for.
    public static func xmlDocument(
        charset: String? = nil, limits: XMLLimits = XMLLimits()
    ) -> XMLDocumentSerializer {
        XMLDocumentSerializer(charset: charset, limits: limits)
    }
}
