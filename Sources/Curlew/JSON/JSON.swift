// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials

/// A JSON format (RFC 8259) that encodes and decodes any `Codable` type, several times as fast as Foundation's coders.
///
/// The options have the names and meanings that they have in `JSONDecoder` and `JSONEncoder`. The results are the same
/// except for the cases in the table of `Documentation/JSON.md`. A client uses this format unless another one is given.
/// It also works without a client:
///
/// ```swift
/// let json = JSON { encoder, decoder in
///     encoder.dateEncodingStrategy = .iso8601
///     decoder.dateDecodingStrategy = .iso8601
/// }
/// let user = try json.decode(User.self, from: bytes)
/// ```
///
/// Any number of tasks may use a value at once. A value with options keeps buffers between calls, so store it; `JSON()`
/// shares the buffers of all values with default options.
public struct JSON: Sendable {
    enum Decoding: Sendable {
        case own(DecodingPool)
        case foundation(JSONDecoder)
    }

    enum Encoding: Sendable {
        case own(EncodingPool)
        case foundation(JSONEncoder)
    }

    let decoding: Decoding
    let encoding: Encoding
    /// Texts to skip in front of the JSON.
    let prefixes: [String]

    /// Creates a format with the default options, or with coders of Foundation.
    ///
    /// - Parameters:
    ///   - encoder: Foundation's encoder; nil for Curlew's. Do not change it afterwards.
    ///   - decoder: Foundation's decoder; nil for Curlew's. Do not change it afterwards.
    ///   - prefixes: Texts to skip in front of the JSON; the longest match counts. See ``guardPrefixes``.
    public init(encoder: JSONEncoder? = nil, decoder: JSONDecoder? = nil, stripping prefixes: [String] = []) {
        decoding = decoder.map { .foundation($0) } ?? JSON.defaultDecoding
        encoding = encoder.map { .foundation($0) } ?? JSON.defaultEncoding
        self.prefixes = prefixes
    }

    /// Creates a format with options that a closure sets.
    ///
    /// - Parameters:
    ///   - prefixes: Texts to skip in front of the JSON.
    ///   - configure: A closure that receives the default options and changes them. It is called once, before the
    ///     initializer returns.
    /// - Throws: The error of the closure.
    public init(
        stripping prefixes: [String] = [],
        configure: (_ encoder: inout EncodingOptions, _ decoder: inout DecodingOptions) throws -> Void
    ) rethrows {
        var (encoder, decoder) = (EncodingOptions(), DecodingOptions())
        try configure(&encoder, &decoder)
        decoding = decoder.isJSON ? .own(DecodingPool(DecodingPlan(decoder))) : .foundation(decoder.decoder)
        encoding = .own(EncodingPool(EncodingPlan(encoder)))
        self.prefixes = prefixes
    }

    private static let defaultDecoding = Decoding.own(DecodingPool(DecodingPlan(DecodingOptions())))
    private static let defaultEncoding = Encoding.own(EncodingPool(EncodingPlan(EncodingOptions())))

    /// The format with the default options.
    static let standard = JSON()

    /// The format of most web services: names in snake case, dates as text (ISO 8601, RFC 3339).
    ///
    /// Names convert as in Foundation: `user_id` becomes `userId`, so a property `userID` needs a coding key. The
    /// decoder reads dates with and without fractions of a second. The encoder writes milliseconds only where a date
    /// has some.
    public static let web = JSON { encoder, decoder in
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.dateDecodingStrategy = .iso8601
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(ISODate.text(date, withMilliseconds: true))
        }
    }

    /// Prefixes that prevent a page of another site from running the JSON of a server as a script, such as `)]}'`,
    /// `for(;;);` and `while(1);`.
    public static let guardPrefixes = [")]}',", ")]}'", "for(;;);", "for (;;);", "while(1);", "while (1);", "{}&&"]

    /// Encodes a value as UTF-8.
    ///
    /// - Returns: The text, without white space unless an option requests it.
    /// - Throws: `EncodingError`, with the path of the value; or the error of the value's own encoding.
    public func encode(_ value: some Encodable) throws -> Data {
        switch encoding {
        case .own(let pool): try pool.encode(value) { Data($0) }
        case .foundation(let encoder): try encoder.encode(value)
        }
    }

    /// Decodes a whole text.
    ///
    /// ```swift
    /// let user = try JSON().decode(User.self, from: bytes)
    /// ```
    /// - Parameters:
    ///   - type: The result.
    ///   - bytes: UTF-8, UTF-16 or UTF-32, with or without a byte order mark.
    /// - Throws: `DecodingError`, with a ``Fault`` as `underlyingError` unless Foundation's decoder throws it; or an
    ///   error that the type throws itself.
    public func decode<T: Decodable>(_ type: T.Type = T.self, from bytes: some Collection<UInt8>) throws -> T {
        prefixes.isEmpty ? try decode(type, plain: bytes) : try decode(type, plain: stripped(Data(bytes)))
    }

    /// Decodes a text that has no prefix to skip.
    func decode<T: Decodable>(_ type: T.Type, plain bytes: some Collection<UInt8>) throws -> T {
        switch decoding {
        case .own(let pool): try pool.decode(type, unicode: bytes)
        case .foundation(let decoder): try decoder.decode(type, from: bytes as? Data ?? Data(bytes))
        }
    }

    /// Returns a text without its byte order mark and without the longest prefix that matches.
    func stripped(_ text: Data) -> Data {
        let text = text.starts(with: JSONEncodings.mark) ? Data(text.dropFirst(JSONEncodings.mark.count)) : text
        let start = text.drop(while: \.isBlank)
        let found = prefixes.filter { start.starts(with: $0.utf8) }.max { $0.utf8.count < $1.utf8.count }
        return found.map { Data(start.dropFirst($0.utf8.count)) } ?? text
    }
}

extension JSON {
    /// The options of `JSONDecoder`, with the same names and the same defaults.
    public struct DecodingOptions: Sendable {
        /// The strategy that decodes a `Date`; seconds since 2001 by default.
        ///
        /// `.iso8601` also accepts fractions of a second and offsets from UTC.
        public var dateDecodingStrategy: JSONDecoder.DateDecodingStrategy = .deferredToDate
        /// The strategy that decodes `Data`; Base64 by default.
        public var dataDecodingStrategy: JSONDecoder.DataDecodingStrategy = .base64
        /// Strings that decode as infinities and NaN; by default such a string is an error.
        public var nonConformingFloatDecodingStrategy: JSONDecoder.NonConformingFloatDecodingStrategy = .throw
        /// The strategy that converts names to keys; by default a name is the key.
        ///
        /// Names in dictionaries stay as they are.
        public var keyDecodingStrategy: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys
        /// The `userInfo` of the decoder that types see; empty by default.
        public var userInfo: [CodingUserInfoKey: any Sendable] = [:]
        /// Whether the decoder accepts JSON5; false by default.
        ///
        /// If so, Foundation's decoder does the work.
        public var allowsJSON5 = false
        /// Whether the text may be the members of an object without its braces; false by default.
        ///
        /// If so, Foundation's decoder does the work.
        public var assumesTopLevelDictionary = false

        init() {}

        /// Whether Curlew's decoder can read the texts: they are JSON without extensions.
        fileprivate var isJSON: Bool { !allowsJSON5 && !assumesTopLevelDictionary }

        /// Foundation's decoder with these options.
        fileprivate var decoder: JSONDecoder {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = dateDecodingStrategy
            decoder.dataDecodingStrategy = dataDecodingStrategy
            decoder.nonConformingFloatDecodingStrategy = nonConformingFloatDecodingStrategy
            decoder.keyDecodingStrategy = keyDecodingStrategy
            decoder.userInfo = userInfo
            decoder.allowsJSON5 = allowsJSON5
            decoder.assumesTopLevelDictionary = assumesTopLevelDictionary
            return decoder
        }
    }

    /// The options of `JSONEncoder`, with the same names and the same defaults.
    public struct EncodingOptions: Sendable {
        /// Options for indentation, sorted names and unescaped slashes; by default the text is compact.
        public var outputFormatting: JSONEncoder.OutputFormatting = []
        /// The strategy that encodes a `Date`; seconds since 2001 by default.
        public var dateEncodingStrategy: JSONEncoder.DateEncodingStrategy = .deferredToDate
        /// The strategy that encodes `Data`; Base64 by default.
        public var dataEncodingStrategy: JSONEncoder.DataEncodingStrategy = .base64
        /// Strings that stand for infinities and NaN; by default such a number is an error.
        public var nonConformingFloatEncodingStrategy: JSONEncoder.NonConformingFloatEncodingStrategy = .throw
        /// The strategy that converts keys to names; by default a key is the name.
        ///
        /// Keys of dictionaries stay as they are.
        public var keyEncodingStrategy: JSONEncoder.KeyEncodingStrategy = .useDefaultKeys
        /// The `userInfo` of the encoder that types see; empty by default.
        public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

        init() {}
    }
}
