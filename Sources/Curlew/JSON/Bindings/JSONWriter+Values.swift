// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import FoundationEssentials

extension JSONWriter {
    // MARK: Strings

    /// Writes a string with the required escapes (RFC 8259 §7); slashes are escaped unless the plan disables it.
    @inline(__always)
    func string(_ string: String) {
        let span = string.utf8Span.span
        span.withUnsafeBufferPointer { text($0) }
    }

    private func text(_ bytes: UnsafeBufferPointer<UInt8>) {
        reserve(bytes.count + 2)
        put(UInt8(ascii: "\""))
        var place = 0
        while let stop = plainEnd(bytes, place) {
            put(UnsafeBufferPointer(rebasing: bytes[place..<stop]))
            escape(bytes[stop])
            place = stop + 1
        }
        put(UnsafeBufferPointer(rebasing: bytes[place...]))
        put(UInt8(ascii: "\""))
    }

    /// Returns the offset of the first byte that needs an escape; nil if no byte does.
    ///
    /// Looks at eight bytes at a time.
    @inline(__always)
    private func plainEnd(_ bytes: UnsafeBufferPointer<UInt8>, _ start: Int) -> Int? {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let slash = ones &* (plan.escapesSlashes ? 0x2F : 0x22)
        var place = start
        guard let base = bytes.baseAddress.map({ UnsafeRawPointer($0) }) else { return nil }
        while bytes.count - place >= 8 {
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: place, as: UInt64.self))
            let (quote, back, forward) = (word ^ (ones &* 0x22), word ^ (ones &* 0x5C), word ^ slash)
            let found =
                ((quote &- ones) & ~quote | (back &- ones) & ~back | (forward &- ones) & ~forward
                    | (word &- ones &* 0x20) & ~word) & (ones &* 0x80)
            if found != 0 { return place + found.trailingZeroBitCount >> 3 }
            place += 8
        }
        while place < bytes.count {
            let byte = bytes[place]
            if byte == 0x22 || byte == 0x5C || byte < 0x20 || byte == 0x2F && plan.escapesSlashes { return place }
            place += 1
        }
        return nil
    }

    private func escape(_ byte: UInt8) {
        put(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: put(UInt8(ascii: "b"))
        case 0x0C: put(UInt8(ascii: "f"))
        case 0x0A: put(UInt8(ascii: "n"))
        case 0x0D: put(UInt8(ascii: "r"))
        case 0x09: put(UInt8(ascii: "t"))
        case 0x00..<0x20:
            put("u00")
            put(UInt8(ascii: "0") + byte >> 4)
            put(byte & 15 < 10 ? UInt8(ascii: "0") + byte & 15 : UInt8(ascii: "a") + byte & 15 - 10)
        default: put(byte)
        }
    }

    // MARK: Numbers

    func bool(_ value: Bool) {
        if value { put("true") } else { put("false") }
    }

    func null() { put("null") }

    @inline(__always)
    func integer<T: FixedWidthInteger>(_ value: T) {
        if let small = UInt64(exactly: value) { return digits(small) }
        if let small = Int64(exactly: value) {
            put(UInt8(ascii: "-"))
            return digits(small.magnitude)
        }
        ascii("\(value)")
    }

    /// Writes a number of at most 20 digits.
    @inline(never)
    private func digits(_ value: UInt64) {
        reserve(20)
        var length = 1
        var bound: UInt64 = 10
        while length < 20, value >= bound {
            length += 1
            let (next, isOver) = bound.multipliedReportingOverflow(by: 10)
            bound = isOver ? .max : next
            if isOver, length == 20 { break }
        }
        var rest = value
        for place in stride(from: length - 1, through: 0, by: -1) {
            (end + place).initialize(to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        }
        state.pointee.count += length
    }

    /// Writes the shortest decimal number that decodes as the same `Double`; whole numbers have no fraction.
    func double(_ value: Double) throws {
        guard value.isFinite else { return try nonConforming(value, value) }
        let size = value.magnitude
        if size < 1e15, size >= 1e-3 || size == 0 {
            var power = 1.0
            for decimals in 0...6 {
                let scaled = size * power
                if scaled >= 1e15 { break }
                let whole = scaled.rounded()
                // At most 15 digits are unique: no other number of so many digits reads as the same value.
                if whole / power == size {
                    if value.sign == .minus { put(UInt8(ascii: "-")) }
                    return fixed(UInt64(whole), decimals)
                }
                power *= 10
            }
        }
        ascii(value.description)
    }

    func float(_ value: Float) throws {
        guard value.isFinite else { return try nonConforming(Double(value), value) }
        ascii(value.description)
    }

    /// Writes a number whose last digits are decimals.
    @inline(__always)
    private func fixed(_ digits: UInt64, _ decimals: Int) {
        if decimals == 0 { return self.digits(digits) }
        var power: UInt64 = 1
        for _ in 0..<decimals { power *= 10 }
        let (whole, fraction) = digits.quotientAndRemainder(dividingBy: power)
        self.digits(whole)
        reserve(decimals + 1)
        end.initialize(to: UInt8(ascii: "."))
        var rest = fraction
        for place in stride(from: decimals, through: 1, by: -1) {
            (end + place).initialize(to: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        }
        state.pointee.count += decimals + 1
    }

    /// Writes the description that Swift gives a number, without ".0".
    private func ascii(_ text: String) {
        let bytes = text.utf8Span.span
        bytes.withUnsafeBufferPointer { bytes in
            let isWhole = bytes.count > 2 && bytes[bytes.count - 1] == 0x30 && bytes[bytes.count - 2] == 0x2E
            put(UnsafeBufferPointer(rebasing: bytes[..<(bytes.count - (isWhole ? 2 : 0))]))
        }
    }

    private func nonConforming(_ value: Double, _ original: any Encodable) throws {
        if let text = plan.nonConforming(value) { return string(text) }
        throw EncodingError.invalidValue(
            original,
            EncodingError.Context(
                codingPath: codingPath(),
                debugDescription: "Unable to encode \(type(of: original)).\(value) directly in JSON."))
    }

    func decimal(_ value: Decimal) throws {
        if value.isNaN {
            throw EncodingError.invalidValue(
                value,
                EncodingError.Context(
                    codingPath: codingPath(), debugDescription: "Unable to encode Decimal.nan in JSON."))
        }
        ascii(value.description)
    }

    // MARK: Values of any type

    @inline(__always)
    func value<T: Encodable>(_ value: T) throws {
        switch ways.way(of: T.self, plan) {
        case .own: try own(value)
        case .direct(let direct):
            try withUnsafePointer(to: value) { try direct.encode(from: UnsafeRawPointer($0), to: self) }
        }
    }

    /// Calls the value's own `encode(to:)`.
    ///
    /// A value that writes nothing becomes an empty object, except the outermost.
    @inline(__always)
    func own<T: Encodable>(_ value: T) throws {
        try checkDepth()
        try written { try value.encode(to: $0) }
    }

    @inline(__always)
    func written(_ body: (ValueEncoding) throws -> Void) throws {
        let (count, depth, splices) = (state.pointee.count, state.pointee.depth, state.pointee.spliceCount)
        try body(ValueEncoding(writer: self, depth: Int32(truncatingIfNeeded: depth), start: count))
        if state.pointee.count == count, depth > 0, state.pointee.spliceCount == splices { return put("{}") }
        close(to: depth)
    }

    @inline(__always)
    func keyed<Key: CodingKey>(_ type: Key.Type, _ depth: Int, _ id: Int) -> KeyedEncodingContainer<Key> {
        if let entry = kept.free(for: type) {
            entry.pointee.frame.point(to: self, depth, id)
            return copy(unsafeDowncast(entry.pointee.holder, to: ContainerHolder<KeyedEncodingContainer<Key>>.self))
        }
        return newKeyed(type, depth, id)
    }

    @inline(never)
    private func newKeyed<Key: CodingKey>(
        _ type: Key.Type, _ depth: Int, _ id: Int
    ) -> KeyedEncodingContainer<Key> {
        let frame = EncodingFrame(self, names(for: type))
        frame.point(to: self, depth, id)
        let container = KeyedEncodingContainer(KeyedEncoding<Key>(frame: frame))
        if !kept.keep(container, for: type, frame) { frame.own() }
        return container
    }
}
