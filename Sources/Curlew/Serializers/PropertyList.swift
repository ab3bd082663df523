// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// Apple's property lists, for encoding and decoding with Foundation: written as XML or binary, read as either.
///
/// ```swift
/// let body = try PropertyList(.binary).encode(["volume": 11])
/// ```
public struct PropertyList: RequestFormat, ResponseFormat {
    /// The layout of a property list.
    public enum Layout: Sendable, Hashable, CaseIterable {
        /// As text (`<plist version="1.0">`).
        case xml
        /// As bytes (`bplist00`).
        case binary
    }

    private let encoder: PropertyListEncoder
    private let decoder = PropertyListDecoder()

    /// Creates a format that writes property lists in a layout; XML unless given.
    public init(_ layout: Layout = .xml) {
        encoder = PropertyListEncoder()
        encoder.outputFormat = layout == .xml ? .xml : .binary
    }

    /// `application/x-plist`.
    public var contentType: MediaType { .propertyList }

    /// `application/x-plist`, and XML, because property lists are often served as XML.
    public var accepts: [MediaType] { [.propertyList, "application/xml;q=0.5", "text/xml;q=0.5"] }

    /// Encodes in the layout.
    /// - Throws: `EncodingError`, or the error of the value's own encoding.
    public func encode(_ value: some Encodable) throws -> Data { try encoder.encode(value) }

    /// Decodes a property list in either layout; XML must be in UTF-8.
    /// - Throws: `DecodingError`, the error of the value's own decoding, or `NetworkError` when the body is not a
    ///   property list, is more than 256 levels deep, or refers to the same objects so often that its expanded size is
    ///   far above its length.
    public func decode<T: Decodable>(_ type: T.Type, from body: Data, of head: ResponseHead) throws -> T {
        do throws(PropertyListCheck.Failure) {
            try PropertyListCheck.check(Array(body))
        } catch {
            let reason =
                switch error {
                case .malformed: "the body is not a valid property list"
                case .tooDeep: "the property list is more than \(PropertyListCheck.depthLimit) levels deep"
                case .tooLarge: "the property list refers to the same objects too often"
                }
            let context = DecodingError.Context(codingPath: [], debugDescription: reason)
            throw NetworkError.undecodable(type, ": " + reason, cause: DecodingError.dataCorrupted(context))
        }
        return try decoder.decode(type, from: body)
    }
}

extension PropertyList: TextualFormat {
    func isNull(_ body: Data, of head: ResponseHead) -> Bool { false }
}

extension RequestFormat where Self == PropertyList {
    /// Property lists as XML.
    public static var plist: PropertyList { PropertyList() }

    /// Property lists in a layout.
    public static func plist(_ layout: PropertyList.Layout) -> PropertyList { PropertyList(layout) }
}

extension ResponseFormat where Self == PropertyList {
    /// Property lists in either layout.
    public static var plist: PropertyList { PropertyList() }
}
