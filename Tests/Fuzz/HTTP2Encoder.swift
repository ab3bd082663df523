// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The Huffman encoder for RFC 7541 Appendix B, built from the code lengths; the server needs only the decoder.
enum HuffmanCode {
    /// Returns the compressed bytes with valid padding.
    static func encode(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        var bits: UInt64 = 0
        var count = 0
        for byte in bytes {
            let code = codes[Int(byte)]
            bits = bits << UInt64(code.length) | UInt64(code.bits)
            count += code.length
            while count >= 8 {
                count -= 8
                output.append(UInt8(truncatingIfNeeded: bits >> UInt64(count)))
            }
        }
        if count > 0 { output.append(UInt8(truncatingIfNeeded: bits << UInt64(8 - count)) | UInt8(0xFF >> count)) }
        return output
    }

    private static let codes: [(bits: UInt32, length: Int)] = {
        var codes = [(bits: UInt32, length: Int)](repeating: (0, 0), count: Huffman.lengths.count)
        let order = Huffman.lengths.indices.sorted {
            (Huffman.lengths[$0], $0) < (Huffman.lengths[$1], $1)
        }
        var next: UInt32 = 0
        var length = Int(Huffman.lengths[order[0]])
        for symbol in order {
            next <<= UInt32(Int(Huffman.lengths[symbol]) - length)
            length = Int(Huffman.lengths[symbol])
            codes[symbol] = (next, length)
            next += 1
        }
        return codes
    }()
}

/// An encoder that uses both tables, all representations and all sizes of the dynamic table (RFC 7541 §6).
struct IndexingEncoder {
    /// The entries, the newest first, as bytes, because sizes are counted in bytes.
    private var table: [(name: [UInt8], value: [UInt8])] = []
    private(set) var size = 0
    private var maximum: Int

    init(limit: Int) {
        maximum = limit
    }

    /// Changes the size of the table and returns the encoded size update.
    mutating func resize(to size: Int) -> [UInt8] {
        maximum = size
        evict(for: 0)
        return Self.integer(size, prefix: 5, mark: 0x20)
    }

    /// Encodes one field; two bits of `order` select the representation, two more the strings to compress.
    mutating func write(_ name: [UInt8], _ value: [UInt8], as order: UInt8, to block: inout [UInt8]) {
        let fixed = hpackStaticTable.count
        if order & 4 != 0, let place = table.firstIndex(where: { $0.name == name && $0.value == value }) {
            block += Self.integer(fixed + 1 + place, prefix: 7, mark: 0x80)
            return
        }
        let known = hpackStaticTable.firstIndex { Array($0.name.utf8) == name }
        let index = known.map { $0 + 1 } ?? table.firstIndex { $0.name == name }.map { fixed + 1 + $0 } ?? 0
        let isIndexing = order & 0x80 != 0
        block += Self.integer(index, prefix: isIndexing ? 6 : 4, mark: isIndexing ? 0x40 : order & 0x10)
        if index == 0 { block += Self.string(name, isCompressed: order & 8 != 0) }
        block += Self.string(value, isCompressed: order & 16 != 0)
        if isIndexing { insert(name, value) }
    }

    private mutating func insert(_ name: [UInt8], _ value: [UInt8]) {
        let needed = name.count + value.count + 32
        evict(for: needed)
        guard needed <= maximum else { return }
        table.insert((name, value), at: 0)
        size += needed
    }

    private mutating func evict(for needed: Int) {
        while size + needed > maximum, let last = table.popLast() { size -= last.name.count + last.value.count + 32 }
    }

    private static func integer(_ value: Int, prefix: Int, mark: UInt8) -> [UInt8] {
        var bytes: [UInt8] = []
        HPACK.append(value, prefix: prefix, to: &bytes)
        bytes[0] |= mark
        return bytes
    }

    private static func string(_ bytes: [UInt8], isCompressed: Bool) -> [UInt8] {
        let packed = isCompressed ? HuffmanCode.encode(bytes[...]) : bytes
        return integer(packed.count, prefix: 7, mark: isCompressed ? 0x80 : 0) + packed
    }
}
