// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// HPACK encodes fields as blocks and decodes them (RFC 7541). The encoder never indexes, because a test server does not
// need it; the decoder accepts everything that a client may send. Only HTTP2Frame and HTTP2Connection call it.

/// The reason why a block of fields is malformed.
struct MalformedFields: Error {
    let reason: String

    init(_ reason: String) {
        self.reason = reason
    }
}

package enum HPACK {
    package typealias Field = (name: String, value: String)

    /// Encodes fields as literals without indexing and without Huffman coding (RFC 7541 §6.2.2).
    package static func encode(_ fields: [Field]) -> [UInt8] {
        var block: [UInt8] = []
        for field in fields {
            block.append(0)
            append(field.name, to: &block)
            append(field.value, to: &block)
        }
        return block
    }

    private static func append(_ text: String, to block: inout [UInt8]) {
        append(text.utf8.count, prefix: 7, to: &block)
        block += text.utf8
    }

    /// Appends an integer with a prefix of `prefix` bits in its first byte (RFC 7541 §5.1).
    package static func append(_ value: Int, prefix: Int, to block: inout [UInt8]) {
        let most = 1 << prefix - 1
        if value < most {
            block.append(UInt8(value))
            return
        }
        block.append(UInt8(most))
        var rest = value - most
        while rest >= 128 {
            block.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        block.append(UInt8(rest))
    }
}

/// The decoding side of one connection, with its dynamic table (RFC 7541 §2.3.2).
package struct HPACKDecoder {
    /// The maximum table size that SETTINGS_HEADER_TABLE_SIZE permits.
    private let sizeLimit: Int
    /// The entries of the dynamic table, the newest first.
    private var entries: [Entry] = []
    private(set) package var tableSize = 0
    private var maximumSize: Int

    /// A field with the lengths of its original bytes, because the text is longer if the bytes are not valid UTF-8.
    private struct Entry {
        let field: HPACK.Field
        let nameLength: Int
        let valueLength: Int

        init(_ name: Text, _ value: Text) {
            field = (name.text, value.text)
            nameLength = name.length
            valueLength = value.length
        }

        /// The size of the entry in the table (RFC 7541 §4.1).
        var size: Int { nameLength + valueLength + 32 }
    }

    private typealias Text = (text: String, length: Int)

    package init(tableSize: Int = 4096) {
        sizeLimit = tableSize
        maximumSize = tableSize
    }

    /// The fields of the dynamic table, the newest first.
    package var table: [HPACK.Field] { entries.map { $0.field } }

    /// Decodes the fields of a whole block in order.
    package mutating func decode(_ block: ArraySlice<UInt8>) throws -> [HPACK.Field] {
        var rest = block
        var fields: [HPACK.Field] = []
        while let first = rest.first {
            if first & 0x80 != 0 {
                fields.append(try entry(try Self.integer(&rest, prefix: 7)).field)
            } else if first & 0xC0 == 0x40 {
                let entry = try literal(&rest, prefix: 6)
                insert(entry)
                fields.append(entry.field)
            } else if first & 0xE0 == 0x20 {
                let size = try Self.integer(&rest, prefix: 5)
                guard size <= sizeLimit, fields.isEmpty else {
                    throw MalformedFields("The dynamic table's new size \(size) is too large or too late.")
                }
                maximumSize = size
                evict(for: 0)
            } else {
                fields.append(try literal(&rest, prefix: 4).field)
            }
        }
        return fields
    }

    private mutating func literal(_ rest: inout ArraySlice<UInt8>, prefix: Int) throws -> Entry {
        let index = try Self.integer(&rest, prefix: prefix)
        if index == 0 { return Entry(try Self.string(&rest), try Self.string(&rest)) }
        let known = try entry(index)
        return Entry((known.field.name, known.nameLength), try Self.string(&rest))
    }

    private func entry(_ index: Int) throws -> Entry {
        let fixed = hpackStaticTable
        if index >= 1, index <= fixed.count {
            let field = fixed[index - 1]
            return Entry((field.name, field.name.utf8.count), (field.value, field.value.utf8.count))
        }
        guard index > fixed.count, index - fixed.count <= entries.count else {
            throw MalformedFields("No field has the index \(index).")
        }
        return entries[index - fixed.count - 1]
    }

    private mutating func insert(_ entry: Entry) {
        evict(for: entry.size)
        guard entry.size <= maximumSize else { return }
        entries.insert(entry, at: 0)
        tableSize += entry.size
    }

    private mutating func evict(for size: Int) {
        while tableSize + size > maximumSize, let last = entries.popLast() { tableSize -= last.size }
    }

    private static func integer(_ rest: inout ArraySlice<UInt8>, prefix: Int) throws -> Int {
        guard let first = rest.popFirst() else { throw MalformedFields("A block of fields ends too early.") }
        let most = 1 << prefix - 1
        var value = Int(first) & most
        if value < most { return value }
        for shift in stride(from: 0, through: 28, by: 7) {
            guard let byte = rest.popFirst() else { throw MalformedFields("A block of fields ends in a number.") }
            value += Int(byte & 127) << shift
            if byte & 128 == 0 { return value }
        }
        throw MalformedFields("A number in a block of fields is too large.")
    }

    private static func string(_ rest: inout ArraySlice<UInt8>) throws -> Text {
        let isCompressed = (rest.first ?? 0) & 0x80 != 0
        let count = try integer(&rest, prefix: 7)
        guard count <= rest.count else { throw MalformedFields("A block of fields ends in a string.") }
        let coded = rest.prefix(count)
        rest = rest.dropFirst(count)
        let bytes = isCompressed ? try Huffman.decode(coded) : Array(coded)
        return (String(decoding: bytes, as: UTF8.self), bytes.count)
    }
}
