// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Writes values as query strings and as forms (`application/x-www-form-urlencoded`).
///
/// Values nest: what is inside another value is named by a path in brackets, and lists repeat their name. No standard
/// says how, so each habit can be chosen; the defaults are AFNetworking's. Names and values are percent-encoded as
/// ``escape(_:spaces:)`` does, brackets of names too.
///
/// ```swift
/// struct Search: Encodable { var text: String, tags: [String], near: [String: Double] }
/// let search = Search(text: "tea & cake", tags: ["b", "a"], near: ["lat": 48.2])
/// let query = try QueryEncoder().encode(search)
/// // near%5Blat%5D=48.2&tags%5B%5D=b&tags%5B%5D=a&text=tea%20%26%20cake
/// let spaced = try QueryEncoder(arrays: .commaJoined, nesting: .dots, spaces: .plus).encode(search)
/// // near.lat=48.2&tags=b,a&text=tea+%26+cake
/// ```
///
/// Numbers are written in decimal digits, never with an exponent, and whole ones without a fraction, whatever their type:
/// `48.0` is `48`; `URL`, `UUID` and `Decimal` as they describe themselves; enumerations as their raw values. The keys of a dictionary may be of any type that is written as one
/// text. The elements of a `Set` stand in the order of their text and repeat the name without brackets, whatever the
/// style, unless arrays are joined by commas. An optional property that is nil is left out, because Swift leaves it out
/// (`encodeIfPresent`); nil in dictionaries, in arrays and in a ``Query`` is written as ``nils`` says.
public struct QueryEncoder: Sendable, Hashable {
    /// How the elements of arrays are named; `a` is the name of the array.
    public enum ArrayStyle: String, Sendable, Hashable, Codable, CaseIterable {
        /// `a[]=1&a[]=2`: what PHP and Rails read.
        case brackets
        /// `a=1&a=2`: what most others read.
        case repeated
        /// `a[0]=1&a[1]=2`: the only one by which arrays of dictionaries and of arrays are never ambiguous.
        case indexed
        /// `a=1,2`: only for arrays of plain values. The commas between elements are not percent-encoded, those inside
        /// are.
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
        /// Not at all.
        case omit
        /// An empty value: `name=`.
        case empty
        /// A value of one's own, such as "null".
        case literal(String)
    }

    /// What becomes of names; each name on a path is changed on its own.
    public enum KeyStyle: String, Sendable, Hashable, Codable, CaseIterable {
        /// Nothing.
        case asIs
        /// `userName` and `UserName` become `user_name`, and `myURLPath` becomes `my_url_path`.
        case snakeCase
        /// As snake case, with "-".
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
        /// `+`, as HTML forms are sent; only readers of forms take it for a space.
        case plus
    }

    /// In which order names stand.
    public enum OrderStyle: String, Sendable, Hashable, Codable, CaseIterable {
        /// Ascending by the bytes of the name, at each level: equal values give equal text.
        case sorted
        /// As the value encodes them. Dictionaries have no order, so theirs are sorted anyway.
        case asGiven
    }

    /// What becomes of dictionaries, arrays and sets without elements.
    public enum EmptyStyle: String, Sendable, Hashable, Codable, CaseIterable {
        /// They vanish.
        case omit
        /// Their name alone, without "=".
        case keyOnly
    }

    /// How the elements of arrays are named; `a[]=1&a[]=2` unless set.
    public var arrays: ArrayStyle
    /// How names inside named values are written; `outer[inner]` unless set.
    public var nesting: NestingStyle
    /// How `Bool` is written; `1` and `0` unless set.
    public var bools: BoolStyle
    /// How `Date` is written; `2001-01-01 00:00:00 +0000` unless set.
    public var dates: DateStyle
    /// How `Data` is written; base64 unless set.
    public var data: DataStyle
    /// How nil is written; as the name alone unless set.
    public var nils: NilStyle
    /// What becomes of names; nothing unless set.
    public var keys: KeyStyle
    /// How a space is written; `%20` unless set.
    public var spaces: SpaceStyle
    /// In which order names stand; ascending unless set.
    public var order: OrderStyle
    /// What becomes of empty dictionaries, arrays and sets; they vanish unless set.
    public var empties: EmptyStyle

    /// An encoder with the given styles; each has the default that its property names.
    public init(
        arrays: ArrayStyle = .brackets, nesting: NestingStyle = .brackets, bools: BoolStyle = .numeric,
        dates: DateStyle = .description, data: DataStyle = .base64, nils: NilStyle = .keyOnly, keys: KeyStyle = .asIs,
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

    /// Writes a value that has names: a structure, a dictionary, a ``Query``.
    ///
    /// - Returns: The pairs joined by "&", without a leading "?"; "" when there is nothing to write, and for nil.
    /// - Throws: `EncodingError.invalidValue`, which names the coding path, for a value without names (an array, a set,
    ///   a number, a text), for more than 64 values inside one another, for keys of dictionaries that are more than one
    ///   text, and for nested values in arrays that are joined by commas. The error has the value's type in the place
    ///   of the value, which may be a secret. What the value itself throws comes through unchanged.
    public func encode(_ value: some Encodable) throws -> String {
        if let query = value as? Query { return try query.text(self) }
        return try text(of: entries(of: value))
    }

    /// Percent-encodes one name or value.
    ///
    /// Letters and digits of ASCII and `- . _ ~ / ?` stay as they are; of everything else the UTF-8 is written as
    /// `%XX` with upper-case digits (RFC 3986 §2.1).
    /// - Parameter spaces: How a space is written; `%20` unless given. A "+" is always `%2B`.
    public static func escape(_ text: String, spaces: SpaceStyle = .percent) -> String {
        text.percentEncoded(keeping: kept, space: spaces == .plus ? "+" : "%20")
    }

    private static let kept = ByteSet.letters.union(.digits).union(ByteSet("-._~/?"))
}
