// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension Request {
    /// Writes values as query strings and as forms (`application/x-www-form-urlencoded`).
    ///
    /// Values nest: a value inside another value is named by a path in brackets, and lists repeat their name. No
    /// standard defines these rules, so each style can be set; the defaults are those of AFNetworking. Names, including
    /// their brackets, and values are percent-encoded as by ``escape(_:spaces:)``.
    ///
    /// ```swift
    /// struct Search: Encodable { var text: String, tags: [String], near: [String: Double] }
    /// let search = Search(text: "tea & cake", tags: ["b", "a"], near: ["lat": 48.2])
    /// let query = try Request.QueryEncoder().encode(search)
    /// // near%5Blat%5D=48.2&tags%5B%5D=b&tags%5B%5D=a&text=tea%20%26%20cake
    /// let spaced = try Request.QueryEncoder(arrays: .commaJoined, nesting: .dots, spaces: .plus).encode(search)
    /// // near.lat=48.2&tags=b,a&text=tea+%26+cake
    /// ```
    ///
    /// Numbers are written in decimal digits without an exponent, and whole numbers of every type without a fraction:
    /// `48.0` is `48`. `URL`, `UUID` and `Decimal` are written as they describe themselves, enumerations as their raw
    /// values. The keys of a dictionary can have any type that is written as one text. The elements of a `Set` are
    /// sorted by their text and repeat the name without brackets in every style, unless arrays are joined by commas. An
    /// optional property that is nil is omitted, because Swift omits it (`encodeIfPresent`); ``nils`` decides how nil
    /// is written in dictionaries, in arrays and in a ``Request/Query``.
    public struct QueryEncoder: Sendable, Hashable {
        /// How the elements of arrays are named; `a` is the name of the array.
        public enum ArrayStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// `a[]=1&a[]=2`, as PHP and Rails read arrays.
            case brackets
            /// `a=1&a=2`, as most other servers read arrays.
            case repeated
            /// `a[0]=1&a[1]=2`, the only style that is never ambiguous for arrays of dictionaries and arrays of arrays.
            case indexed
            /// `a=1,2`, only for arrays of plain values.
            ///
            /// The commas between elements are not percent-encoded, but the commas inside elements are.
            case commaJoined
        }

        /// How a name inside a named value is written.
        public enum NestingStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// `outer[inner]`.
            case brackets
            /// `outer.inner`.
            case dots
        }

        /// How `Bool` is written.
        public enum BoolStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// `1` and `0`.
            case numeric
            /// `true` and `false`.
            case literal
        }

        /// How `Date` is written, always in UTC.
        public enum DateStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// `2001-01-01 00:00:00 +0000`: whole seconds.
            case description
            /// `2001-01-01T00:00:00Z`: whole seconds (RFC 3339).
            case iso8601
            /// Seconds since 1970, with a fraction only if there is one.
            case secondsSince1970
            /// Whole milliseconds since 1970.
            case millisecondsSince1970
        }

        /// How `Data` is written.
        public enum DataStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// With "+", "/" and "=" (RFC 4648 §4).
            case base64
            /// With "-" and "_", without padding (RFC 4648 §5).
            case base64URL
        }

        /// How nil is written.
        public enum NilStyle: Sendable, Hashable {
            /// The name alone, without "=".
            case keyOnly
            /// Nothing: nil is omitted.
            case omit
            /// An empty value: `name=`.
            case empty
            /// The given text, such as "null".
            case literal(String)
        }

        /// How names are changed; each name of a path is changed separately.
        public enum KeyStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// Names stay as they are.
            case asIs
            /// `userName` and `UserName` become `user_name`, and `myURLPath` becomes `my_url_path`.
            case snakeCase
            /// Like snake case, with "-".
            case kebabCase
            /// `user_name` and `user-name` become `userName`; names of one word stay as they are.
            case camelCase
            /// All letters in lower case.
            case lowercase
            /// All letters in upper case.
            case uppercase
        }

        /// How a space is written.
        public enum SpaceStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// `%20`, which every reader of queries and forms understands.
            case percent
            /// `+`, as in HTML forms; only readers of forms decode it to a space.
            case plus
        }

        /// The order of names.
        public enum OrderStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// Ascending by the bytes of the name, at each level: equal values give equal text.
            case sorted
            /// The order in which the value encodes them; names in dictionaries, which have no order, are sorted
            /// anyway.
            case asGiven
        }

        /// How empty dictionaries, arrays and sets are written.
        public enum EmptyStyle: String, Sendable, Hashable, Codable, CaseIterable {
            /// Nothing: they are omitted.
            case omit
            /// The name alone, without "=".
            case keyOnly
        }

        /// How the elements of arrays are named; `a[]=1&a[]=2` by default.
        public var arrays: ArrayStyle
        /// How names inside named values are written; `outer[inner]` by default.
        public var nesting: NestingStyle
        /// How `Bool` is written; `1` and `0` by default.
        public var bools: BoolStyle
        /// How `Date` is written; `2001-01-01 00:00:00 +0000` by default.
        public var dates: DateStyle
        /// How `Data` is written; base64 by default.
        public var data: DataStyle
        /// How nil is written; the name alone by default.
        public var nils: NilStyle
        /// How names are changed; they stay as they are by default.
        public var keys: KeyStyle
        /// How a space is written; `%20` by default.
        public var spaces: SpaceStyle
        /// The order of names; ascending by default.
        public var order: OrderStyle
        /// How empty dictionaries, arrays and sets are written; they are omitted by default.
        public var empties: EmptyStyle

        /// Creates an encoder with the given styles; the documentation of each property names its default.
        public init(
            arrays: ArrayStyle = .brackets, nesting: NestingStyle = .brackets, bools: BoolStyle = .numeric,
            dates: DateStyle = .description, data: DataStyle = .base64, nils: NilStyle = .keyOnly,
            keys: KeyStyle = .asIs,
            spaces: SpaceStyle = .percent, order: OrderStyle = .sorted, empties: EmptyStyle = .omit
        ) {
            self.arrays = arrays
            self.nesting = nesting
            self.bools = bools
            self.dates = dates
            self.data = data
            self.nils = nils
            self.keys = keys
            self.spaces = spaces
            self.order = order
            self.empties = empties
        }

        /// Encodes a value that has names: a structure, a dictionary or a ``Request/Query``.
        ///
        /// - Returns: The pairs joined by "&", without a leading "?"; "" for nil and when nothing is encoded.
        /// - Throws: `EncodingError.invalidValue`, which names the coding path, for a value without names (an array, a
        ///   set, a number, a text), for more than 64 values inside one another, for keys of dictionaries that are more
        ///   than one text, and for nested values in arrays that are joined by commas. The error has the value's type
        ///   instead of the value, which may be a secret. Errors that the value itself throws are rethrown unchanged.
        public func encode(_ value: some Encodable) throws -> String {
            if let query = value as? Request.Query { return try query.text(self) }
            return try text(of: entries(of: value))
        }

        /// Percent-encodes one name or value.
        ///
        /// ASCII letters, ASCII digits and `- . _ ~ / ?` stay as they are; the UTF-8 of all other characters is written
        /// as `%XX` with upper-case digits (RFC 3986 §2.1).
        /// - Parameter spaces: How a space is written; `%20` by default. A "+" is always `%2B`.
        public static func escape(_ text: String, spaces: SpaceStyle = .percent) -> String {
            text.percentEncoded(keeping: kept, space: spaces == .plus ? "+" : "%20")
        }

        private static let kept = ByteSet.letters.union(.digits).union(ByteSet("-._~/?"))
    }
}
