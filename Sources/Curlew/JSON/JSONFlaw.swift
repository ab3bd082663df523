// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An error that the index pass throws: a flaw of a JSON text and its byte offset.
struct JSONFlaw: Error, Hashable {
    enum Reason: Hashable {
        case empty
        case value
        case elementOrEnd
        case commaOrEnd(isObject: Bool)
        case name
        case colon
        case unterminated
        case control
        case escape
        case surrogate
        case encoding
        case digit
        case trailing
        case depth
        case size
    }

    let reason: Reason
    /// Bytes from the start of the text.
    let offset: Int

    init(_ reason: Reason, at offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

extension JSONFlaw.Reason: CustomStringConvertible {
    var description: String {
        switch self {
        case .empty: "there is no value"
        case .value: "expected a value"
        case .elementOrEnd: "expected a value after the comma, not the end of the array"
        case .commaOrEnd(let isObject): "expected “,” or “\(isObject ? "}" : "]")”"
        case .name: "expected a name in quotation marks"
        case .colon: "expected “:” after the name"
        case .unterminated: "the string does not end"
        case .control: "a string holds a control character that is not escaped"
        case .escape: "a string holds an invalid escape"
        case .surrogate: "an escape is only half of a surrogate pair"
        case .encoding: "a string is not valid UTF-8"
        case .digit: "expected a digit"
        case .trailing: "there is text after the value"
        case .depth: "arrays and objects are nested more than \(JSONLimits.depth) levels deep"
        case .size: "the text has more bytes or values than a decoder can index"
        }
    }
}

/// The position of a value that could not be decoded; it becomes a ``JSON/Fault`` when its error leaves the decoder.
///
/// Types that attempt several types in turn catch most errors, so line and column are computed only at the end.
struct JSONMark: Error {
    let reason: String
    let kind: JSON.Fault.Kind
    let offset: Int
}

/// The limits of a JSON text.
enum JSONLimits {
    /// The maximum number of nested arrays and objects, as in Foundation's coders.
    static let depth = 512
    /// The maximum number of bytes of a text, because offsets have 32 bits.
    static let bytes = Int(UInt32.max)
    /// The maximum number of values of a text and of bytes of a string, because both have 28 bits.
    static let count = 1 << 28 - 1
}
