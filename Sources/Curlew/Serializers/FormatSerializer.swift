// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

/// Reads any `Decodable` type by a format: its own, or the one of the client it is used with.
///
/// Three kinds of results are special. `Data` is the body as it came, whatever its type. An `Optional` is nil when the
/// body is empty, or holds nothing but white space or a null. Everything else needs a body that is not empty.
///
/// ```swift
/// let users = FormatSerializer<[User]>(JSON { $1.keyDecodingStrategy = .convertFromSnakeCase })
/// ```
public struct FormatSerializer<Output: Decodable & Sendable>: ResponseSerializer {
    private let format: (any ResponseFormat)?

    /// Reads by a format.
    ///
    /// - Parameter format: The client's when it is nil, and JSON where there is no client.
    public init(_ format: (any ResponseFormat)? = nil) {
        self.format = format
    }

    /// What the format can read; anything when the body is not to be read as a format at all.
    public var accepts: [MediaType] {
        Output.self == Data.self || Output.self == Data?.self ? [.any] : (format ?? JSON.standard).accepts
    }

    /// Decodes the body.
    ///
    /// - Throws: `NetworkError`: `.decodingFailed` with the place in the body, or whatever ended the transfer.
    public func output(from response: IncomingResponse) async throws -> Output {
        let body = try await response.collect()
        let reading = BodyReading(body: body, head: response.head, format: format ?? JSON.standard)
        do {
            return try reading.value(as: Output.self)
        } catch is BodyReading.Nothing {
            throw NetworkError.emptyBody(expecting: Output.self, of: response.head, request: response.request)
        } catch {
            throw NetworkError.decoding(
                error, as: Output.self, of: response.head, body: body, request: response.request)
        }
    }

    /// The same serializer with a format, if it has none of its own.
    public func bound(to format: any ResponseFormat) -> FormatSerializer {
        FormatSerializer(self.format ?? format)
    }
}

/// A body about to become a value.
private struct BodyReading {
    /// What is thrown for a body that is empty.
    struct Nothing: Error {}

    let body: Data
    let head: ResponseHead
    let format: any ResponseFormat

    func value<T: Decodable>(as type: T.Type) throws -> T {
        if let optional = type as? any Absence.Type, let value = try optional.read(self) as? T { return value }
        if let data = body as? T, type == Data.self { return data }
        if isEmpty { throw Nothing() }
        return try format.decode(type, from: body, of: head)
    }

    /// Whether there is no value at all.
    var isEmpty: Bool {
        guard let first = body.first else { return true }
        return first.isBlank && format is any TextualFormat && body.allSatisfy(\.isBlank)
    }

    var isNull: Bool { (format as? any TextualFormat)?.isNull(body, of: head) ?? false }
}

/// What every `Optional` of a decodable type is, found out at run time.
private protocol Absence {
    static func read(_ reading: BodyReading) throws -> Self
}

extension Optional: Absence where Wrapped: Decodable {
    fileprivate static func read(_ reading: BodyReading) throws -> Wrapped? {
        let isData = Wrapped.self == Data.self
        if reading.body.isEmpty || !isData && (reading.isEmpty || reading.isNull) { return nil }
        do {
            return try reading.value(as: Wrapped.self)
        } catch DecodingError.valueNotFound(_, let context) where context.codingPath.isEmpty {
            // The null of a format that is not ours.
            return nil
        }
    }
}

extension ResponseSerializer {
    /// Reads the client's format, where a serializer has to be said: `.oneOf(.when(.decoding(User.self), Reply.user), …)`.
    ///
    /// - Parameter type: The result.
    public static func decoding<T: Decodable & Sendable>(
        _ type: T.Type = T.self
    ) -> FormatSerializer<T> where Self == FormatSerializer<T> {
        FormatSerializer()
    }

    /// Reads JSON, whatever the client's format is.
    ///
    /// - Parameters:
    ///   - type: The result.
    ///   - format: How the JSON is read.
    public static func json<T: Decodable & Sendable>(
        _ type: T.Type = T.self, _ format: JSON = JSON()
    ) -> FormatSerializer<T> where Self == FormatSerializer<T> {
        FormatSerializer(format)
    }

    /// Reads property lists, whatever the client's format is.
    ///
    /// - Parameter type: The result.
    public static func plist<T: Decodable & Sendable>(
        _ type: T.Type = T.self
    ) -> FormatSerializer<T> where Self == FormatSerializer<T> {
        FormatSerializer(PropertyList())
    }
}
