// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Server-sent events and lines: they do not depend on the chunks and contain only bytes of the input.
///
/// The first two bytes select the positions of the cuts in the rest.
func examine(_ input: [UInt8]) {
    let cuts = input.prefix(2).map(Int.init)
    let bytes = Array(input.dropFirst(2))
    examineEvents(bytes, cuts)
    examineLines(bytes, cuts)
}

private func pieces(_ bytes: [UInt8], _ cuts: [Int]) -> [[UInt8]] {
    let first = min(cuts.first ?? 0, bytes.count)
    let second = min(first + (cuts.last ?? 0), bytes.count)
    return [Array(bytes[..<first]), Array(bytes[first..<second]), Array(bytes[second...])]
}

private struct Reading: Equatable {
    var events: [ServerSentEvent] = []
    var id = ""
    var retry: Duration?
    var isTooLarge = false
}

private func reading(_ pieces: [[UInt8]]) -> Reading {
    var parser = EventStreamParser(limit: 64)
    var reading = Reading()
    do {
        for piece in pieces { try parser.parse(piece.span, into: &reading.events) }
    } catch {
        reading.isTooLarge = true
        return reading
    }
    (reading.id, reading.retry) = (parser.lastEventID, parser.reconnectionTime)
    return reading
}

private func examineEvents(_ bytes: [UInt8], _ cuts: [Int]) {
    let whole = reading([bytes])
    demand(reading(pieces(bytes, cuts)) == whole, "events change with the cut")
    demand(reading(bytes.map { [$0] }) == whole, "events change with every cut")
    for event in whole.events {
        demand(!event.type.isEmpty, "an event has no type")
        demand(!event.type.utf8.contains { $0 == 0x0A || $0 == 0x0D }, "a type has a line break")
        demand(!event.id.utf8.contains { $0 == 0x0A || $0 == 0x0D || $0 == 0 }, "an ID has a line break or a NUL")
        demand(!event.data.utf8.contains(0x0D), "data has a CR")
        demand((event.retry ?? .zero) >= .zero, "a wait is negative")
    }
    let length = whole.events.reduce(0) { $0 + $1.data.unicodeScalars.count }
    demand(length <= bytes.count, "the data is longer than the input")
}

private func lines(_ pieces: [[UInt8]]) -> ([[UInt8]], isTooLong: Bool) {
    var splitter = LineSplitter(limit: 64)
    var lines: [[UInt8]] = []
    let take = { (line: Span<UInt8>, number: Int) in
        var bytes: [UInt8] = []
        for index in line.indices { bytes.append(line[index]) }
        demand(number == lines.count + 1, "line \(number) comes after \(lines.count)")
        lines.append(bytes)
    }
    do {
        for piece in pieces { try splitter.split(piece.span, take) }
        try splitter.end(take)
    } catch {
        return (lines, true)
    }
    return (lines, false)
}

private func examineLines(_ bytes: [UInt8], _ cuts: [Int]) {
    let whole = lines([bytes])
    demand(lines(pieces(bytes, cuts)) == whole && lines(bytes.map { [$0] }) == whole, "lines change with the cut")
    demand(!whole.0.contains { $0.contains(0x0A) || $0.count > 64 }, "a line has a line break or is too long")
    guard !whole.isTooLong else { return }
    var expected = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { line in
        Array(line.last == 0x0D ? line.dropLast() : line)
    }
    if bytes.isEmpty || bytes.last == 0x0A { expected.removeLast() }
    demand(whole.0 == expected, "the lines differ: \(whole.0)")
}
