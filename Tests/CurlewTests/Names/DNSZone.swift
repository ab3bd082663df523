// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

@testable import Curlew

/// Records that answer the questions of DNS messages.
struct DNSZone: Sendable {
    struct Record: Sendable {
        let name: String
        let type: DNSMessage.RecordType
        let lifetime: UInt32
        let data: [UInt8]

        static func a(_ name: String, _ address: String, lifetime: UInt32 = 300) -> Record {
            let data = HostName.bytes(ofAddress: address) ?? []
            return Record(name: name, type: data.count == 4 ? .a : .aaaa, lifetime: lifetime, data: data)
        }

        static func alias(_ name: String, _ target: String) -> Record {
            Record(name: name, type: .cname, lifetime: 300, data: DNSZone.bytes(of: target))
        }

        /// - Parameter parameters: In ascending order of the keys.
        static func https(
            _ name: String, _ priority: UInt16 = 1, _ target: String = ".", _ parameters: [Parameter] = []
        ) -> Record {
            let list = parameters.flatMap { DNSZone.bytes($0.key) + DNSZone.bytes(UInt16($0.value.count)) + $0.value }
            return Record(
                name: name, type: .https, lifetime: 300,
                data: DNSZone.bytes(priority) + DNSZone.bytes(of: target) + list)
        }

        var bytes: [UInt8] {
            DNSZone.bytes(of: name) + DNSZone.bytes(type.rawValue) + [0, 1] + DNSZone.bytes(UInt16(lifetime >> 16))
                + DNSZone.bytes(UInt16(lifetime & 0xFFFF))
                + DNSZone.bytes(UInt16(data.count)) + data
        }
    }

    /// A parameter of an HTTPS record.
    struct Parameter: Sendable {
        let key: UInt16
        let value: [UInt8]

        static let noDefaultALPN = Parameter(key: 2, value: [])

        static func alpn(_ names: String...) -> Parameter {
            Parameter(key: 1, value: names.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) })
        }
        static func port(_ port: UInt16) -> Parameter { Parameter(key: 3, value: DNSZone.bytes(port)) }
        static func hint(_ address: String) -> Parameter {
            Parameter(key: 4, value: HostName.bytes(ofAddress: address) ?? [])
        }
    }

    let records: [Record]

    init(_ records: [Record]) { self.records = records }

    static func bytes(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 0xFF)] }

    /// Returns a name without compression.
    static func bytes(of name: String) -> [UInt8] {
        name == "." ? [0] : name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + $0.utf8 } + [0]
    }

    /// Returns the response to a question of ``DNSMessage``.
    func response(to question: [UInt8], code: UInt8 = 0) -> [UInt8] {
        let (name, type) = Self.read(question)
        let aliases = records.filter { $0.name == name && $0.type == .cname }
        let answers = records.filter { $0.name == name && $0.type == type }
        // A name without any record does not exist.
        let missing: UInt8 = records.contains { $0.name == name } ? 0 : 3
        let head: [UInt8] = [0, 0, 0x81, 0x80 | (code == 0 ? missing : code), 0, 1]
        let all = answers.isEmpty ? aliases : answers
        return head + Self.bytes(UInt16(all.count)) + [0, 0, 0, 0] + question[12...] + all.flatMap(\.bytes)
    }

    /// Returns the name and the type of a question.
    static func read(_ question: [UInt8]) -> (name: String, type: DNSMessage.RecordType?) {
        var labels: [String] = []
        var place = 12
        while question[place] > 0 {
            let end = place + 1 + Int(question[place])
            labels.append(String(decoding: question[(place + 1)..<end], as: UTF8.self))
            place = end
        }
        let number = UInt16(question[place + 1]) << 8 | UInt16(question[place + 2])
        return (labels.joined(separator: "."), DNSMessage.RecordType(rawValue: number))
    }

    /// Returns the question in the query of a URL (RFC 8484 §4.1).
    static func question(in query: String?) -> [UInt8]? {
        guard let query, query.hasPrefix("dns=") else { return nil }
        let text = query.dropFirst(4).replacing("-", with: "+").replacing("_", with: "/")
        return Data(base64Encoded: text + String(repeating: "=", count: (4 - text.count % 4) % 4)).map(Array.init)
    }
}
