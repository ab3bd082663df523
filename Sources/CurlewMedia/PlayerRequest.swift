// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A request of a player, parsed strictly (RFC 9112): the endpoint trusts no byte of it.
struct PlayerRequest: Sendable, Hashable {
    /// The reason to refuse a request, with the status of the response.
    enum Flaw: Error, Hashable, Sendable {
        /// The head is malformed, or the request has a body.
        case malformed
        /// The version is not 1.0 or 1.1.
        case version

        var status: Int {
            switch self {
            case .malformed: 400
            case .version: 505
            }
        }
    }

    /// The method as it was sent; the case matters.
    let method: String
    /// The path of the target, without its query.
    let path: String
    /// The authority of the target if it is a whole URL, else the `Host` field.
    let host: String
    /// Whether the version is 1.1.
    let isCurrent: Bool
    private let fields: [(name: String, value: String)]

    static func == (one: PlayerRequest, other: PlayerRequest) -> Bool {
        one.method == other.method && one.path == other.path && one.host == other.host
            && one.isCurrent == other.isCurrent && one.fields.map(\.name) == other.fields.map(\.name)
            && one.fields.map(\.value) == other.fields.map(\.value)
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(method)
        hasher.combine(path)
        hasher.combine(host)
    }

    /// Returns the number of bytes of the head at the start of received bytes, with its empty line; nil if its end has
    /// not arrived.
    static func headLength(_ bytes: [UInt8]) -> Int? {
        var index = 0
        while index + 3 < bytes.count {
            if bytes[index] == 13, bytes[index + 1] == 10, bytes[index + 2] == 13, bytes[index + 3] == 10 {
                return index + 4
            }
            index += 1
        }
        return nil
    }

    /// Parses a head with its empty line.
    init(head: some Collection<UInt8>) throws(Flaw) {
        var lines = try Self.lines(Array(head))
        guard !lines.isEmpty else { throw .malformed }
        let words = lines.removeFirst().split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        guard words.count == 3, HeaderName(words[0]).isValid else { throw .malformed }
        guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else {
            throw words[2].hasPrefix("HTTP/") ? .version : .malformed
        }
        isCurrent = words[2] == "HTTP/1.1"
        method = words[0]
        var fields: [(name: String, value: String)] = []
        for line in lines {
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { throw .malformed }
            let name = String(line[..<colon])
            guard HeaderName(name).isValid else { throw .malformed }
            let rest = line.utf8[line.utf8.index(after: colon)...].drop { $0 == 0x20 || $0 == 0x09 }
            var value = Substring(rest)
            while let last = value.utf8.last, last == 0x20 || last == 0x09 { value.removeLast() }
            fields.append((name.lowercased(), String(value)))
        }
        self.fields = fields
        // A body would be taken for the next request.
        if let length = Self.value("content-length", in: fields), length != "0" { throw .malformed }
        if Self.value("transfer-encoding", in: fields) != nil { throw .malformed }
        let hosts = fields.filter { $0.name == "host" }
        guard hosts.count == 1 || hosts.isEmpty && !isCurrent else { throw .malformed }
        var (target, authority) = (words[1], hosts.first?.value ?? "")
        if let prefix = ["http://", "HTTP://"].first(where: { target.hasPrefix($0) }) {
            let rest = target.dropFirst(prefix.utf8.count)
            let slash = rest.firstIndex(of: "/") ?? rest.endIndex
            (authority, target) = (String(rest[..<slash]), slash == rest.endIndex ? "/" : String(rest[slash...]))
        }
        guard target.hasPrefix("/") else { throw .malformed }
        host = authority.lowercased()
        path = target.firstIndex(of: "?").map { String(target[..<$0]) } ?? target
    }

    /// Splits a head into lines of printable characters.
    private static func lines(_ head: [UInt8]) throws(Flaw) -> [String] {
        var (lines, line, index) = ([String](), [UInt8](), 0)
        while index < head.count {
            let byte = head[index]
            if byte == 13 {
                guard index + 1 < head.count, head[index + 1] == 10 else { throw .malformed }
                if line.isEmpty {
                    guard index + 2 == head.count else { throw .malformed }
                    return lines
                }
                // A line that begins with white space would continue the line before (RFC 9112 §5.2).
                guard line[0] != 0x20, line[0] != 0x09 else { throw .malformed }
                lines.append(String(decoding: line, as: UTF8.self))
                line = []
                index += 2
            } else {
                guard byte >= 0x20 || byte == 0x09, byte != 0x7F else { throw .malformed }
                line.append(byte)
                index += 1
            }
        }
        throw .malformed
    }

    private static func value(_ name: String, in fields: [(name: String, value: String)]) -> String? {
        let values = fields.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// Returns the value of a field, with several values joined by commas; nil without the field.
    ///
    /// - Parameter name: The name in lower case.
    subscript(name: String) -> String? { Self.value(name, in: fields) }

    /// Whether the connection can carry another request.
    var keepsAlive: Bool {
        let options = (self["connection"] ?? "").lowercased().split(separator: ",").map {
            $0.filter { $0 != " " && $0 != "\t" }
        }
        if options.contains("close") { return false }
        return isCurrent || options.contains("keep-alive")
    }
}

/// The range of a file that a player requests (RFC 9110 §14.2).
enum PlayerRange: Sendable, Hashable {
    case whole
    case part(Range<Int64>)
    case unsatisfiable

    /// Interprets a `Range` field; an invalid one, another unit and several ranges mean the whole.
    init(_ field: String?, length: Int64) {
        self = .whole
        guard let field, let equals = field.firstIndex(of: "="), field[..<equals].lowercased() == "bytes" else {
            return
        }
        let text = field[field.index(after: equals)...].filter { $0 != " " && $0 != "\t" }
        let ends = text.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return }
        guard ends.allSatisfy({ $0.utf8.allSatisfy(ByteSet.digits.contains) }) else { return }
        // A number that does not fit is beyond the end of any file.
        let first = ends[0].isEmpty ? nil : Int64(ends[0]) ?? .max
        let last = ends[1].isEmpty ? nil : Int64(ends[1]) ?? .max
        switch (first, last) {
        case (nil, nil): return
        case (nil, let count?):
            self = count == 0 || length == 0 ? .unsatisfiable : .part(max(length - count, 0)..<length)
        case (let first?, let last):
            if let last, last < first { return }
            self = first >= length ? .unsatisfiable : .part(first..<min(last ?? .max, length - 1) + 1)
        }
    }
}
