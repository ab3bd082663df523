// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// A DNS message (RFC 1035 §4): the question for one name, and the usable part of a response.
///
/// Names are in lower case, without a dot at their end, and consist of letters, digits, "-", "_" and "~". A name with
/// other bytes is not a host name, so the parser skips its records and the aliases to it. The parser does not read the
/// data of records of other types and classes.
struct DNSMessage: Sendable, Hashable {
    /// The types of records that Curlew reads.
    enum RecordType: UInt16, Sendable, CaseIterable {
        case a = 1
        case cname = 5
        case aaaa = 28
        /// RFC 9460 §9.
        case https = 65
    }

    /// A record of the answer section.
    struct Record: Sendable, Hashable {
        var name: String
        /// Seconds; a value with the highest bit set counts as 0 (RFC 2181 §8), although RFC 8767 §4 allows more.
        var lifetime: UInt32
        var data: Data

        enum Data: Sendable, Hashable {
            /// The four or sixteen bytes of an address.
            case address([UInt8])
            /// The name that replaces the name of the record (CNAME).
            case alias(String)
            /// An HTTPS record; nil if it is malformed.
            case service(ServiceBinding?)
        }
    }

    /// The reason why a response is not usable; the raw value completes the sentence "the response …".
    enum Flaw: String, Error, Sendable, Hashable {
        case truncated = "ends early"
        case malformed = "is malformed"
        case isQuery = "is a query"
        case otherQuestion = "is about another question"
        case tooManyRecords = "has too many records"
    }

    /// The maximum length of a message in bytes (RFC 8484 §6).
    static let maximumLength = 65_535
    /// The maximum number of records in all sections of a response.
    static let maximumRecords = 256
    /// The maximum number of aliases between a name and its addresses.
    static let maximumAliases = 16

    /// The response code with its extension (RFC 1035 §4.1.1, RFC 6891 §6.1.3).
    ///
    /// 0 means no error, and 3 that the name does not exist.
    private(set) var code: UInt16
    /// Whether the server omitted records.
    let isTruncated: Bool
    private(set) var records: [Record] = []
    /// The lifetime of a negative response in seconds, from its SOA record (RFC 2308 §5); nil without such a record.
    private(set) var negativeLifetime: UInt32?

    // MARK: Questions

    /// Returns the bytes of a question with recursion desired and the identifier 0 (RFC 8484 §4.1).
    ///
    /// The result is nil if a label or the name has an invalid length.
    ///
    /// - Parameter name: A name of A-labels, without a dot at its end.
    static func question(_ name: String, _ type: RecordType) -> [UInt8]? {
        guard name.utf8.count <= 253 else { return nil }
        var bytes: [UInt8] = [0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        for label in name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard (1...63).contains(label.count) else { return nil }
            bytes.append(UInt8(label.count))
            bytes += label
        }
        return bytes + [0, UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
    }

    // MARK: Responses

    /// Reads the response to a question.
    ///
    /// HTTP assigns the response to its request, so the identifier may be any number (RFC 8484 §4.1). The question must
    /// be the same, because a cache between client and server could confuse responses. Only a response with an error
    /// may omit the question.
    init(response bytes: [UInt8], to name: String, _ type: RecordType) throws(Flaw) {
        guard bytes.count <= Self.maximumLength else { throw .malformed }
        var reader = DNSReader(bytes)
        _ = try reader.number()
        let flags = try reader.number()
        guard flags & 0x8000 != 0 else { throw .isQuery }
        guard flags & 0x7800 == 0 else { throw .malformed }
        code = flags & 0x0F
        isTruncated = flags & 0x0200 != 0
        let questions = try reader.number()
        let answers = Int(try reader.number())
        let authorities = Int(try reader.number())
        let additions = Int(try reader.number())
        guard questions == 1 || questions == 0 && code != 0 && code != 3 else { throw .malformed }
        guard answers + authorities + additions <= Self.maximumRecords else { throw .tooManyRecords }
        if questions == 1 {
            let asked = (name: try reader.name(), type: try reader.number(), kind: try reader.number())
            guard asked == (Self.lowerCase(name), type.rawValue, 1) else { throw .otherQuestion }
        }
        for _ in 0..<answers {
            if let record = try reader.record().known() { records.append(record) }
        }
        for _ in 0..<authorities {
            let lifetime = try reader.record().negativeLifetime()
            negativeLifetime = negativeLifetime ?? lifetime
        }
        for _ in 0..<additions { code |= try reader.record().extendedCode }
        guard reader.isAtEnd else { throw .malformed }
    }

    /// Reduces the lifetimes by the seconds for which a cache has kept the response.
    mutating func shortenLifetimes(by age: UInt32) {
        for index in records.indices { records[index].lifetime -= min(age, records[index].lifetime) }
        negativeLifetime = negativeLifetime.map { $0 - min(age, $0) }
    }

    /// Follows the aliases of a name, and returns its addresses and the shortest lifetime of these records.
    ///
    /// The result is nil if there is no address.
    func addresses(of name: String) -> (addresses: [[UInt8]], lifetime: UInt32)? {
        follow(name) { data in
            if case .address(let bytes) = data { bytes } else { nil }
        }
        .map { ($0.values, $0.lifetime) }
    }

    /// Follows the aliases of a name, and returns its service bindings and the shortest lifetime of these records.
    ///
    /// The result is nil if there is no HTTPS record. The bindings are in the order of their priorities; those with the
    /// same priority are in the order of the message. The list omits unusable bindings, so it may be empty. One
    /// malformed record makes all bindings of the name unusable (RFC 9460 §2.2). If there are bindings in alias mode,
    /// the list has only these (§2.4.1), and the caller asks for the records of their targets.
    func services(of name: String) -> (services: [ServiceBinding], lifetime: UInt32)? {
        let found = follow(name) { data -> ServiceBinding?? in
            if case .service(let binding) = data { .some(binding) } else { nil }
        }
        guard let found else { return nil }
        let bindings = found.values.compactMap(\.self)
        guard bindings.count == found.values.count else { return ([], found.lifetime) }
        let aliases = bindings.filter(\.isAlias)
        let services = (aliases.isEmpty ? bindings : aliases).filter(\.isUsable)
        return (services.sorted { $0.priority < $1.priority }, found.lifetime)
    }

    /// Follows the aliases of `name`, and returns the selected data of the first name that has such data.
    private func follow<Value>(
        _ name: String, _ select: (Record.Data) -> Value?
    ) -> (values: [Value], lifetime: UInt32)? {
        var current = Self.lowerCase(name)
        var lifetime = UInt32.max
        for _ in 0...Self.maximumAliases {
            var values: [Value] = []
            var shortest = lifetime
            var next: (name: String, lifetime: UInt32)?
            for record in records where record.name == current {
                if let value = select(record.data) {
                    values.append(value)
                    shortest = min(shortest, record.lifetime)
                } else if next == nil, case .alias(let target) = record.data {
                    next = (target, min(lifetime, record.lifetime))
                }
            }
            if !values.isEmpty { return (values, shortest) }
            guard let next else { return nil }
            (current, lifetime) = next
        }
        return nil
    }

    private static func lowerCase(_ name: String) -> String {
        String(decoding: name.utf8.map(\.asciiLowercased), as: UTF8.self)
    }
}
