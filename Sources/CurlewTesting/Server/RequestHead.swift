// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A violation of HTTP/1.1 in a request, with the status code of the response.
struct MalformedRequest: Error {
    let status: Int
    let reason: String

    init(_ reason: String, status: Int = 400) {
        self.reason = reason
        self.status = status
    }
}

/// The framing of a request's body, which determines its end (RFC 9112 §6.3).
enum BodyFraming {
    case none
    case length(Int)
    case chunked
}

/// A parsed request line with its fields.
struct RequestHead {
    let method: String
    let target: String
    let version: String
    let fields: [(name: String, value: String)]
    let framing: BodyFraming

    /// Parses the bytes before the empty line strictly, so that tests detect lax clients (RFC 9112 §2.2–5).
    init(parsing bytes: ArraySlice<UInt8>) throws {
        var lines = try Self.lines(bytes)[...]
        let parts = String(decoding: lines.removeFirst(), as: UTF8.self)
            .split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3, isToken(parts[0].utf8), !parts[1].isEmpty else {
            throw MalformedRequest("The request line does not consist of method, target and version.")
        }
        guard parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else {
            throw MalformedRequest("The version \(parts[2]) is not HTTP/1.1 or HTTP/1.0.", status: 505)
        }
        (method, target, version) = (parts[0], parts[1], parts[2])
        fields = try lines.map(Self.field)
        framing = try Self.framing(fields)
        let hosts = fields.filter { $0.name.lowercased() == "host" }.count
        guard hosts == 1 || (hosts == 0 && version == "HTTP/1.0") else {
            throw MalformedRequest("There are \(hosts) Host fields.")
        }
    }

    /// Returns the values of a comma-separated field in lower case.
    func tokens(_ name: String) -> [String] {
        Self.tokens(name, in: fields)
    }

    /// The path and query of the target in any of its forms (RFC 9112 §3.2).
    var pathAndQuery: (path: String, query: String?) {
        var rest = target[...]
        if !rest.hasPrefix("/"), let scheme = rest.firstRange(of: "://") {
            let authority = rest[scheme.upperBound...]
            rest = authority.firstIndex { $0 == "/" || $0 == "?" }.map { authority[$0...] } ?? "/"
            if rest.hasPrefix("?") { rest = "/" + rest }
        }
        guard let mark = rest.firstIndex(of: "?") else { return (String(rest), nil) }
        return (String(rest[..<mark]), String(rest[rest.index(after: mark)...]))
    }

    private static func lines(_ bytes: ArraySlice<UInt8>) throws -> [ArraySlice<UInt8>] {
        var lines: [ArraySlice<UInt8>] = []
        var start = bytes.startIndex
        while let end = bytes[start...].firstIndex(of: 13) {
            guard bytes.index(after: end) < bytes.endIndex, bytes[end + 1] == 10 else {
                throw MalformedRequest("A carriage return has no line feed.")
            }
            lines.append(bytes[start..<end])
            start = end + 2
        }
        lines.append(bytes[start...])
        guard !lines.contains(where: { $0.contains(10) || $0.contains(0) }) else {
            throw MalformedRequest("A line feed has no carriage return, or there is a zero byte.")
        }
        return lines
    }

    static func field(_ line: ArraySlice<UInt8>) throws -> (name: String, value: String) {
        guard let colon = line.firstIndex(of: 58), isToken(line[..<colon]) else {
            throw MalformedRequest("A field line has no valid name: \(String(decoding: line, as: UTF8.self))")
        }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 32 || first == 9 { value.removeFirst() }
        while let last = value.last, last == 32 || last == 9 { value.removeLast() }
        return (String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
    }

    private static func tokens(_ name: String, in fields: [(name: String, value: String)]) -> [String] {
        fields.filter { $0.name.lowercased() == name }.flatMap { field in
            field.value.lowercased().split(separator: ",").map { part in
                String(part.drop { $0 == " " || $0 == "\t" }.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
            }
        }
    }

    private static func framing(_ fields: [(name: String, value: String)]) throws -> BodyFraming {
        let codings = tokens("transfer-encoding", in: fields)
        let lengths = tokens("content-length", in: fields)
        guard codings.isEmpty || lengths.isEmpty else {
            throw MalformedRequest("There are both Transfer-Encoding and Content-Length.")
        }
        if !codings.isEmpty {
            guard codings == ["chunked"] else {
                throw MalformedRequest("The only supported transfer coding is chunked.", status: 501)
            }
            return .chunked
        }
        guard let first = lengths.first else { return .none }
        guard lengths.count == 1, let length = Int(first), first.utf8.allSatisfy({ (48...57).contains($0) }) else {
            throw MalformedRequest("Content-Length is not one number.")
        }
        return .length(length)
    }
}

/// Returns whether the bytes are a token (RFC 9110 §5.6.2).
private func isToken(_ bytes: some Collection<UInt8>) -> Bool {
    !bytes.isEmpty
        && bytes.allSatisfy { byte in
            switch byte {
            case 48...57, 65...90, 97...122: true
            case 33, 35...39, 42, 43, 45, 46, 94...96, 124, 126: true
            default: false
            }
        }
}
