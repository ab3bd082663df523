// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads a part of a message: the whole message, the data of a record, or a value in that data.
struct DNSReader {
    private let message: [UInt8]
    private var position = 0
    private var end: Int
    /// The flaw to report if this part is too short.
    private var shortage = DNSMessage.Flaw.truncated

    init(_ message: [UInt8]) {
        self.message = message
        end = message.count
    }

    var count: Int { end - position }
    var isAtEnd: Bool { position == end }

    /// Takes the next bytes.
    mutating func bytes(_ count: Int) throws(DNSMessage.Flaw) -> ArraySlice<UInt8> {
        guard count <= self.count else { throw shortage }
        defer { position += count }
        return message[position..<(position + count)]
    }

    /// Takes the next bytes and returns a reader of them.
    mutating func part(_ count: Int) throws(DNSMessage.Flaw) -> DNSReader {
        var part = self
        part.end = try bytes(count).endIndex
        part.shortage = .malformed
        return part
    }

    mutating func number(of count: Int = 2) throws(DNSMessage.Flaw) -> UInt16 {
        try bytes(count).reduce(0) { $0 << 8 | UInt16($1) }
    }

    mutating func longNumber() throws(DNSMessage.Flaw) -> UInt32 {
        try bytes(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func record() throws(DNSMessage.Flaw) -> Record {
        Record(
            name: try name(), type: try number(), kind: try number(), number: try longNumber(),
            data: try part(Int(try number())))
    }

    /// Reads a name that may be compressed (RFC 1035 §4.1.4).
    ///
    /// The result is in lower case, "." for the root, and nil for a name that is not a host name.
    mutating func name() throws(DNSMessage.Flaw) -> String? {
        try name(pointersBelow: position)
    }

    /// Reads a name whose first pointer refers to a position before `limit`.
    ///
    /// Each further pointer must refer to a position before the target of the previous pointer. The loop ends, because
    /// a name has at most 253 bytes and 253 pointers.
    mutating func name(pointersBelow limit: Int) throws(DNSMessage.Flaw) -> String? {
        var limit = limit
        var rest = self
        var pointers = 0
        var name: [UInt8] = []
        var isHost = true
        var size = Int(try rest.number(of: 1))
        while size > 0 {
            if size >= 0xC0 {
                let target = (size & 0x3F) << 8 | Int(try rest.number(of: 1))
                guard target < limit, pointers < 253 else { throw .malformed }
                if pointers == 0 { position = rest.position }
                pointers += 1
                limit = target
                rest.position = target
            } else {
                guard size < 0x40 else { throw .malformed }
                if !name.isEmpty { name.append(UInt8(ascii: ".")) }
                for byte in try rest.bytes(size) {
                    isHost = isHost && byte != UInt8(ascii: ".") && ByteSet.unreserved.contains(byte)
                    name.append(byte.asciiLowercased)
                }
                guard name.count <= 253 else { throw .malformed }
            }
            size = Int(try rest.number(of: 1))
        }
        if pointers == 0 { position = rest.position }
        guard isHost else { return nil }
        return name.isEmpty ? "." : String(decoding: name, as: UTF8.self)
    }
}

// MARK: Records

extension DNSReader {
    /// A record of any type.
    struct Record {
        var name: String?
        var type: UInt16
        /// The class; 1 for the Internet.
        var kind: UInt16
        /// The lifetime, except in a record of type OPT.
        var number: UInt32
        var data: DNSReader

        private var lifetime: UInt32 { number & 0x8000_0000 == 0 ? number : 0 }

        /// Returns the record if Curlew reads its type, and if its name and its alias are host names.
        func known() throws(DNSMessage.Flaw) -> DNSMessage.Record? {
            guard let name, kind == 1, let type = DNSMessage.RecordType(rawValue: type),
                let content = try content(type, of: name)
            else { return nil }
            return DNSMessage.Record(name: name, lifetime: lifetime, data: content)
        }

        private func content(
            _ type: DNSMessage.RecordType, of name: String
        ) throws(DNSMessage.Flaw) -> DNSMessage.Record.Data? {
            var data = data
            switch type {
            case .a, .aaaa:
                guard data.count == (type == .a ? 4 : 16) else { throw .malformed }
                return .address(Array(try data.bytes(data.count)))
            case .cname:
                let target = try data.name()
                guard data.isAtEnd else { throw .malformed }
                return target.map { .alias($0) }
            case .https:
                return .service(try? ServiceBinding(data, owner: name))
            }
        }

        /// Returns the lower value of the lifetime and the last field of an SOA record; nil for other records.
        ///
        /// The names in an SOA record may have any bytes, such as a dot in the first label of a mailbox.
        func negativeLifetime() throws(DNSMessage.Flaw) -> UInt32? {
            guard type == 6, kind == 1 else { return nil }
            var data = data
            _ = try data.name()
            _ = try data.name()
            guard data.count == 20 else { throw .malformed }
            _ = try data.bytes(16)
            return min(lifetime, try data.longNumber())
        }

        /// The upper bits of the response code if this is an OPT record (RFC 6891 §6.1.3).
        var extendedCode: UInt16 { type == 41 ? UInt16(number >> 24) << 4 : 0 }
    }
}
