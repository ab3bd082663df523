// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// An image that is named by a `data:` URL (RFC 2397) or a `file:` URL (RFC 8089).
enum LocalImage: Equatable {
    case data(Data)
    case file(String)

    /// Reads the URL of a request; nil if it has another scheme.
    ///
    /// - Parameter isAllowed: Whether the loader may load the URL.
    init?(_ request: Request, isAllowed: Bool) throws(NetworkError) {
        guard let colon = request.url.firstIndex(of: ":") else { return nil }
        let rest = request.url[request.url.index(after: colon)...]
        let scheme = request.url[..<colon].lowercased()
        guard ["data", "file"].contains(scheme) else { return nil }
        guard isAllowed else {
            throw .invalid(
                "The loader does not load “\(scheme)” URLs.", "Set allowsLocalURLs if the URLs are trusted.", request)
        }
        switch scheme {
        case "data":
            guard let bytes = Self.bytes(ofData: rest) else {
                throw .invalid("The “data” URL is invalid.", "Check its comma, its base64 and its % signs.", request)
            }
            self = .data(bytes)
        default:
            guard let path = Self.path(ofFile: rest) else {
                throw .invalid("The “file” URL is invalid.", "Pass file:/// and an absolute path.", request)
            }
            self = .file(path)
        }
    }

    private static func bytes(ofData rest: Substring) -> Data? {
        guard let comma = rest.firstIndex(of: ",") else { return nil }
        let isBase64 = rest[..<comma].split(separator: ";").last?.lowercased().trimmed == "base64"
        guard let bytes = decoded(rest[rest.index(after: comma)...]) else { return nil }
        if !isBase64 { return Data(bytes) }
        return Data(base64Encoded: Data(bytes.filter { $0 > 0x20 }))
    }

    private static func path(ofFile rest: Substring) -> String? {
        var path = rest.prefix { $0 != "?" && $0 != "#" }
        if path.hasPrefix("//") {
            path = path.dropFirst(2)
            guard let slash = path.firstIndex(of: "/") else { return nil }
            guard ["", "localhost"].contains(path[..<slash].lowercased()) else { return nil }
            path = path[slash...]
        }
        guard path.hasPrefix("/"), let bytes = decoded(path), !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Returns the bytes of a percent-encoded text (RFC 3986 §2.1); nil for an invalid sequence.
    private static func decoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst()?.hexDigit, let low = rest.popFirst()?.hexDigit else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

extension NetworkError {
    fileprivate static func invalid(_ message: String, _ hint: String, _ request: Request) -> NetworkError {
        NetworkError(invalid: .url, message, hint: hint, request: request)
    }
}

extension String {
    fileprivate var trimmed: String { String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()) }
}

extension UInt8 {
    fileprivate var hexDigit: UInt8? { Character(UnicodeScalar(self)).hexDigitValue.map { UInt8($0) } }
}
