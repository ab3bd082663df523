// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension JSONReader {
    /// Whether values of a type are made of a ``JSONValue``.
    static func reads(_ type: Any.Type) -> Bool {
        type == JSONValue.self || type == [JSONValue].self || type == [String: JSONValue].self
            || type == ProblemDetails.self
    }

    /// The value that the whole text is, in any encoding of Unicode but UTF-8 with a byte order mark.
    static func value(ofUnicode text: Data) throws(Failure) -> JSONValue {
        guard let (encoding, mark) = encoding(of: Array(text.prefix(4))) else { return try value(of: text) }
        guard let text = String(bytes: text.dropFirst(mark), encoding: encoding) else { throw .malformed(at: 0) }
        return try value(of: text.utf8)
    }

    /// The encoding that is not UTF-8, and how long its byte order mark is.
    ///
    /// JSON begins with one character of ASCII at least (RFC 4627 §3), and none of it is NUL.
    private static func encoding(of start: [UInt8]) -> (String.Encoding, mark: Int)? {
        if start == [0x00, 0x00, 0xFE, 0xFF] { return (.utf32BigEndian, 4) }
        if start.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
        if start.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
        switch start.map({ $0 == 0 }) {
        case [true, true, true, false]: return (.utf32BigEndian, 0)
        case [false, true, true, true]: return (.utf32LittleEndian, 0)
        case let nuls where nuls.starts(with: [true, false]): return (.utf16BigEndian, 0)
        case let nuls where nuls.starts(with: [false, true]): return (.utf16LittleEndian, 0)
        default: return nil
        }
    }
}
