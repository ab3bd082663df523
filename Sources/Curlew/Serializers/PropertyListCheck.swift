// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Checks whether Foundation's decoder can decode a property list safely.
///
/// The decoder recurses as deeply as the list is nested, until the stack overflows. It expands every reference of a
/// binary list, so that few bytes can describe more objects than fit into memory.
enum PropertyListCheck {
    enum Failure: Error, Equatable {
        /// The list is neither XML in UTF-8 nor a binary property list, or it is truncated.
        case malformed
        /// Arrays and dictionaries are nested too deeply.
        case tooDeep
        /// The list refers to the same objects so often that its expanded size is far above its length.
        case tooLarge
    }

    /// The maximum depth of nested elements or objects.
    static let depthLimit = 256
    /// The maximum number of expanded objects in a binary list; a list with more bytes may have as many objects as
    /// bytes.
    static let objectLimit = 1 << 20
    /// The maximum number of expanded bytes in strings and data of a binary list; larger for a long list.
    static let byteLimit = 1 << 26

    /// Checks a whole body.
    static func check(_ bytes: [UInt8]) throws(Failure) {
        if bytes.starts(with: "bplist".utf8) {
            var list = try BinaryPropertyList(bytes)
            try list.visit(list.top, depth: 0)
        } else {
            var text = PropertyListText(bytes)
            try text.check()
        }
    }
}

/// The tags of a property list in XML, parsed exactly as Foundation's decoder parses them until it rejects the list.
private struct PropertyListText {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    mutating func check() throws(PropertyListCheck.Failure) {
        // Otherwise the text is UTF-16, or a property list in the NeXT format.
        guard bytes[position...].first(where: { !$0.isBlank }) == UInt8(ascii: "<") else { throw .malformed }
        var depth = 0
        repeat {
            guard let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")) else { throw .malformed }
            position = start
            if try skipped() { continue }
            try skip(to: ">")
            if bytes[start + 1] == UInt8(ascii: "/") {
                depth -= 1
            } else if bytes[position - 2] != UInt8(ascii: "/") {
                depth += 1
            }
            guard depth <= PropertyListCheck.depthLimit else { throw .tooDeep }
            // The decoder ignores the text after the first element.
            if depth <= 0 { return }
        } while true
    }

    /// Skips markup that is not a tag; returns false at a tag.
    private mutating func skipped() throws(PropertyListCheck.Failure) -> Bool {
        let rest = bytes[position...]
        if rest.starts(with: "<!--".utf8) {
            position += 4
            try skip(to: "-->")
        } else if rest.starts(with: "<![CDATA[".utf8) {
            try skip(to: "]]>")
        } else if rest.starts(with: "<?".utf8) {
            // The decoder does not treat this form consistently.
            guard !rest.starts(with: "<?>".utf8) else { throw .malformed }
            try skip(to: "?>")
        } else if rest.starts(with: "<!".utf8) {
            let start = position
            try skip(to: ">")
            guard !bytes[start..<position].contains(UInt8(ascii: "[")) else { throw .malformed }
        } else {
            return false
        }
        return true
    }

    /// Moves behind the next occurrence of an end marker.
    private mutating func skip(to end: StaticString) throws(PropertyListCheck.Failure) {
        let end = end.description.utf8
        while position < bytes.count {
            if bytes[position...].starts(with: end) {
                position += end.count
                return
            }
            position += 1
        }
        throw .malformed
    }
}

/// The objects of a binary property list, followed by a table of their offsets and a trailer with the offset of the
/// table.
private struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    /// The offset of the table, where the objects end.
    private let table: Int
    let top: Int
    private var objectsLeft: Int
    private var bytesLeft: Int

    init(_ bytes: [UInt8]) throws(PropertyListCheck.Failure) {
        let trailer = bytes.count - 32
        guard trailer > 8 else { throw .malformed }
        self.bytes = bytes
        offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize) else { throw .malformed }
        count = try Self.integer(bytes, trailer + 8, size: 8)
        top = try Self.integer(bytes, trailer + 16, size: 8)
        table = try Self.integer(bytes, trailer + 24, size: 8)
        objectsLeft = max(PropertyListCheck.objectLimit, bytes.count)
        bytesLeft = max(PropertyListCheck.byteLimit, 16 * bytes.count)
        let (size, isTooLarge) = count.multipliedReportingOverflow(by: offsetSize)
        guard table > 8, table < trailer, !isTooLarge, size <= trailer - table else { throw .malformed }
    }

    private static func integer(_ bytes: [UInt8], _ start: Int, size: Int) throws(PropertyListCheck.Failure) -> Int {
        guard start <= bytes.count - size else { throw .malformed }
        let value = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let value = Int(exactly: value) else { throw .malformed }
        return value
    }

    /// Visits an object and all objects in it, as often as they are referred to.
    mutating func visit(_ object: Int, depth: Int) throws(PropertyListCheck.Failure) {
        guard depth <= PropertyListCheck.depthLimit else { throw .tooDeep }
        guard objectsLeft > 0 else { throw .tooLarge }
        objectsLeft -= 1
        guard object < count else { throw .malformed }
        let start = try Self.integer(bytes, table + object * offsetSize, size: offsetSize)
        guard (8..<table).contains(start) else { throw .malformed }
        let low = Int(bytes[start] & 0x0F)
        switch bytes[start] >> 4 {
        case 0x0: break
        case 0x1, 0x2: try check(start + 1, items: 1 << low, of: 1)
        case 0x3: try check(start + 1, items: 8, of: 1)
        case 0x8: try check(start + 1, items: low + 1, of: 1)
        case 0x4, 0x5:
            let (first, items) = try extent(start)
            try take(first, items: items, of: 1)
        case 0x6:
            let (first, items) = try extent(start)
            try take(first, items: items, of: 2)
        case 0xA, 0xC: try visitItems(start, times: 1, depth: depth)
        case 0xD: try visitItems(start, times: 2, depth: depth)
        default: throw .malformed
        }
    }

    private mutating func visitItems(_ start: Int, times: Int, depth: Int) throws(PropertyListCheck.Failure) {
        let (first, items) = try extent(start)
        try check(first, items: items, of: times * referenceSize)
        for index in 0..<items * times {
            let reference = try Self.integer(bytes, first + index * referenceSize, size: referenceSize)
            try visit(reference, depth: depth + 1)
        }
    }

    private mutating func take(_ first: Int, items: Int, of size: Int) throws(PropertyListCheck.Failure) {
        try check(first, items: items, of: size)
        guard items * size <= bytesLeft else { throw .tooLarge }
        bytesLeft -= items * size
    }

    /// Returns the offset of an object's first item, and the number of items.
    private func extent(_ start: Int) throws(PropertyListCheck.Failure) -> (first: Int, items: Int) {
        let low = Int(bytes[start] & 0x0F)
        guard low == 0x0F else { return (start + 1, low) }
        let marker = bytes[start + 1]
        guard marker & 0xF0 == 0x10, marker & 0x0F <= 3 else { throw .malformed }
        let size = 1 << Int(marker & 0x0F)
        return (start + 2 + size, try Self.integer(bytes, start + 2, size: size))
    }

    /// Rejects items that do not all precede the table.
    private func check(_ first: Int, items: Int, of size: Int) throws(PropertyListCheck.Failure) {
        let (length, isTooLong) = items.multipliedReportingOverflow(by: size)
        guard !isTooLong, first <= table, length <= table - first else { throw .malformed }
    }
}
