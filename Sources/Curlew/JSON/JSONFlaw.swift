// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// An error in a JSON text and its byte offset, as the index pass throws it.
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
        case .surrogate: "an escape stands for half of a surrogate pair"
        case .encoding: "a string is not valid UTF-8"
        case .digit: "expected a digit"
        case .trailing: "there is text after the value"
        case .depth: "arrays and objects are nested more than \(JSONLimits.depth) levels deep"
        case .size: "the text has more bytes or values than a decoder can index"
        }
    }
}

/// The place of a value that could not be decoded; becomes a ``JSON/Fault`` when its error leaves the decoder.
///
/// Types that try one type after another catch most errors, so line and column are computed only at the end.
struct JSONMark: Error {
    let reason: String
    let kind: JSON.Fault.Kind
    let offset: Int
}

/// The limits of a JSON text.
enum JSONLimits {
    /// Nested arrays and objects, as in Foundation's coders.
    static let depth = 512
    /// Bytes of a text: offsets have 32 bits.
    static let bytes = Int(UInt32.max)
    /// Values of a text, and bytes of a string: both have 28 bits.
    static let count = 1 << 28 - 1
}
