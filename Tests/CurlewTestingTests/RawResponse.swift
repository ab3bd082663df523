// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewTesting

/// A response as the client received it.
struct RawResponse {
    var status = 0
    var reason = ""
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var trailers: [(name: String, value: String)] = []

    var text: String { String(decoding: body, as: UTF8.self) }

    func field(_ name: String) -> String? {
        fields.first { $0.name == name }?.value
    }
}

extension WireClient {
    /// Sends a request without a body, or with a Content-Length.
    func request(_ method: String, _ target: String, _ fields: [String] = [], body: String? = nil) throws {
        let length = body.map { ["Content-Length: \($0.utf8.count)"] } ?? []
        let lines = ["\(method) \(target) HTTP/1.1", "Host: localhost"] + fields + length
        try send(lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
    }

    /// Sends a request and reads its response.
    func exchange(
        _ method: String, _ target: String, _ fields: [String] = [], body: String? = nil
    ) throws -> RawResponse {
        try request(method, target, fields, body: body)
        return try response(to: method)
    }

    /// Reads one response.
    func response(to method: String = "GET") throws -> RawResponse {
        var response = try head()
        if method == "HEAD" || response.status < 200 || [204, 304].contains(response.status) { return response }
        if response.field("Transfer-Encoding") == "chunked" {
            while let chunk = try chunk() { response.body += chunk }
            while case let line = try line(), !line.isEmpty { response.trailers.append(try Self.split(line)) }
        } else if let length = response.field("Content-Length").flatMap({ Int($0) }) {
            response.body = try take(length)
        } else {
            response.body = try rest().bytes
        }
        return response
    }

    /// Reads the head of a response.
    func head() throws -> RawResponse {
        var response = RawResponse()
        let parts = try line().split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0] == "HTTP/1.1", let status = Int(parts[1]) else { throw WireError.notHTTP }
        response.status = status
        response.reason = String(parts[2])
        while case let line = try line(), !line.isEmpty { response.fields.append(try Self.split(line)) }
        return response
    }

    /// Reads one chunk; nil for the last one, whose trailers follow.
    func chunk() throws -> [UInt8]? {
        guard let size = Int(try line(), radix: 16) else { throw WireError.notHTTP }
        guard size > 0 else { return nil }
        let bytes = try take(size)
        guard try line().isEmpty else { throw WireError.notHTTP }
        return bytes
    }

    /// Reads the given number of bytes.
    func take(_ count: Int) throws -> [UInt8] {
        while buffer.count < count { try receive() }
        defer { buffer.removeFirst(count) }
        return Array(buffer[..<count])
    }

    /// Reads all remaining bytes and returns them with the way in which the connection ended.
    func rest() throws -> (bytes: [UInt8], ending: Ending) {
        do {
            while true { try receive() }
        } catch WireError.ended(let ending) {
            defer { buffer = [] }
            return (buffer, ending)
        }
    }

    private func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 10) {
                guard end > 0, buffer[end - 1] == 13 else { throw WireError.notHTTP }
                defer { buffer.removeFirst(end + 1) }
                return String(decoding: buffer[..<(end - 1)], as: UTF8.self)
            }
            try receive()
        }
    }

    private static func split(_ line: String) throws -> (name: String, value: String) {
        guard let colon = line.firstRange(of: ": ") else { throw WireError.notHTTP }
        return (String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
    }
}
