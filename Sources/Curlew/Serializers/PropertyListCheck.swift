// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Whether Foundation's decoder can be trusted with a property list.
///
/// It goes as deep as the list does, until the stack ends, and follows references of binary lists wherever they lead, so
/// that few bytes stand for more than any memory holds.
enum PropertyListCheck {
    enum Failure: Error, Equatable {
        /// It is neither XML in UTF-8 nor a binary property list, or ends too early.
        case malformed
        /// More arrays and dictionaries are within each other than anybody means.
        case tooDeep
        /// By references to the same objects it stands for far more than was received.
        case tooLarge
    }

    /// How many elements or objects may be within each other.
    static let depthLimit = 256
    /// How many objects a binary list may stand for, when it has fewer bytes.
    static let objectLimit = 1 << 20
    /// How many bytes strings and data of a binary list may stand for, when it has few itself.
    static let byteLimit = 1 << 26

    /// Looks at a whole body.
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

/// The tags of a property list in XML, taken apart exactly as Foundation's decoder does until it refuses the list.
private struct PropertyListText {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
    }

    mutating func check() throws(PropertyListCheck.Failure) {
        // Else it is in UTF-16, or a property list of NeXT's.
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
            // What follows the first element is not read.
            if depth <= 0 { return }
        } while true
    }

    /// Goes past what is markup but no tag.
    private mutating func skipped() throws(PropertyListCheck.Failure) -> Bool {
        let rest = bytes[position...]
        if rest.starts(with: "<!--".utf8) {
            position += 4
            try skip(to: "-->")
        } else if rest.starts(with: "<![CDATA[".utf8) {
            try skip(to: "]]>")
        } else if rest.starts(with: "<?".utf8) {
            // Of this one the decoder does not always say the same.
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

    /// Goes behind the next place where an end stands.
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

/// The objects of a binary property list: a table of offsets behind them, of which a trailer says where it is.
private struct BinaryPropertyList {
    private let bytes: [UInt8]
    private let offsetSize: Int
    private let referenceSize: Int
    private let count: Int
    /// Where the objects end.
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

    /// Goes through an object and, as often as they are referred to, all objects in it.
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

    /// Where the items of an object begin, and how many there are.
    private func extent(_ start: Int) throws(PropertyListCheck.Failure) -> (first: Int, items: Int) {
        let low = Int(bytes[start] & 0x0F)
        guard low == 0x0F else { return (start + 1, low) }
        let marker = bytes[start + 1]
        guard marker & 0xF0 == 0x10, marker & 0x0F <= 3 else { throw .malformed }
        let size = 1 << Int(marker & 0x0F)
        return (start + 2 + size, try Self.integer(bytes, start + 2, size: size))
    }

    /// Refuses items that are not all before the table.
    private func check(_ first: Int, items: Int, of size: Int) throws(PropertyListCheck.Failure) {
        let (length, isTooLong) = items.multipliedReportingOverflow(by: size)
        guard !isTooLong, first <= table, length <= table - first else { throw .malformed }
    }
}
