// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension Serializers {
    /// Decodes any `Decodable` type with a format: its own format, or that of its client.
    ///
    /// Three kinds of results are special. `Data` is the unchanged body of any type. An `Optional` is nil when the
    /// body is empty, or contains only white space or a null. Every other type requires a body that is not empty.
    ///
    /// ```swift
    /// let users = Serializers.Formatted<[User]>(JSON { $1.keyDecodingStrategy = .convertFromSnakeCase })
    /// ```
    public struct Formatted<Output: Decodable & Sendable>: ResponseSerializer {
        private let format: (any ResponseFormat)?

        /// Creates a serializer with a format.
        ///
        /// - Parameter format: The format; nil for the client's format, and for JSON without a client.
        public init(_ format: (any ResponseFormat)? = nil) {
            self.format = format
        }

        /// The media types that the format can read; any type when the result is `Data`.
        public var accepts: [MediaType] {
            Output.self == Data.self || Output.self == Data?.self ? [.any] : (format ?? JSON.standard).accepts
        }

        /// Decodes the body.
        ///
        /// - Throws: `NetworkError`: `.decodingFailed` with the place in the body, or the error that ended the
        ///   transfer.
        public func output(from response: IncomingResponse) async throws -> Output {
            let body = try await response.collect()
            let reading = BodyReading(body: body, head: response.head, format: format ?? JSON.standard)
            do {
                return try reading.value(as: Output.self)
            } catch is BodyReading.EmptyBody {
                throw NetworkError.emptyBody(expecting: Output.self, of: response.head, request: response.request)
            } catch {
                throw NetworkError.decoding(
                    error, as: Output.self, of: response.head, body: body, request: response.request)
            }
        }

        /// Returns the serializer with the given format, unless it has a format of its own.
        public func bound(to format: any ResponseFormat) -> Formatted {
            Formatted(self.format ?? format)
        }
    }
}

/// A body that is being decoded.
private struct BodyReading {
    /// The error for an empty body.
    struct EmptyBody: Error {}

    let body: Data
    let head: ResponseHead
    let format: any ResponseFormat

    func value<T: Decodable>(as type: T.Type) throws -> T {
        if let optional = type as? any AnyOptional.Type, let value = try optional.read(self) as? T { return value }
        if let data = body as? T, type == Data.self { return data }
        if isEmpty { throw EmptyBody() }
        return try format.decode(type, from: body, of: head)
    }

    /// Whether the body contains no value.
    var isEmpty: Bool {
        guard let first = body.first else { return true }
        return first.isBlank && format is any TextualFormat && body.allSatisfy(\.isBlank)
    }

    var isNull: Bool { (format as? any TextualFormat)?.isNull(body, of: head) ?? false }
}

/// Identifies an `Optional` of a decodable type at run time.
private protocol AnyOptional {
    static func read(_ reading: BodyReading) throws -> Self
}

extension Optional: AnyOptional where Wrapped: Decodable {
    fileprivate static func read(_ reading: BodyReading) throws -> Wrapped? {
        let isData = Wrapped.self == Data.self
        if reading.body.isEmpty || !isData && (reading.isEmpty || reading.isNull) { return nil }
        do {
            return try reading.value(as: Wrapped.self)
        } catch DecodingError.valueNotFound(_, let context) where context.codingPath.isEmpty {
            // The null of a format outside of this module.
            return nil
        }
    }
}

extension ResponseSerializer {
    /// Decodes with the client's format, for positions that need a serializer: `.oneOf(.when(.decoding(User.self),
    /// Reply.user), …)`.
    ///
    /// - Parameter type: The type of the result.
    public static func decoding<T: Decodable & Sendable>(
        _ type: T.Type = T.self
    ) -> Serializers.Formatted<T> where Self == Serializers.Formatted<T> {
        Serializers.Formatted()
    }

    /// Decodes JSON, independently of the client's format.
    ///
    /// - Parameters:
    ///   - type: The type of the result.
    ///   - format: The options for decoding JSON.
    public static func json<T: Decodable & Sendable>(
        _ type: T.Type = T.self, _ format: JSON = JSON()
    ) -> Serializers.Formatted<T> where Self == Serializers.Formatted<T> {
        Serializers.Formatted(format)
    }

    /// Decodes property lists, independently of the client's format.
    ///
    /// - Parameter type: The type of the result.
    public static func plist<T: Decodable & Sendable>(
        _ type: T.Type = T.self
    ) -> Serializers.Formatted<T> where Self == Serializers.Formatted<T> {
        Serializers.Formatted(PropertyList())
    }
}
