// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

extension String {
    /// The text that this value of a parameter like `filename*` encodes (RFC 8187 §3.2): `UTF-8'en'%e2%82%ac%20rates`.
    ///
    /// Nil when the value is malformed, when its charset is neither UTF-8 nor ISO-8859-1, and when its bytes are
    /// invalid in its charset.
    var extendedValue: String? {
        let parts = split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, let bytes = parts[2].percentDecoded else { return nil }
        switch parts[0].lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1":
            var text = UnicodeScalarView()
            text.append(contentsOf: bytes.map { Unicode.Scalar($0) })
            return String(text)
        default: return nil
        }
    }
}

extension Substring {
    /// The percent-decoded bytes; nil for a percent sign without two hexadecimal digits.
    var percentDecoded: [UInt8]? {
        var bytes: [UInt8] = []
        var rest = utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = Substring(rest.prefix(2))
            guard digits.utf8.count == 2, digits.utf8.first != UInt8(ascii: "+"), let decoded = UInt8(digits, radix: 16)
            else { return nil }
            bytes.append(decoded)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}
