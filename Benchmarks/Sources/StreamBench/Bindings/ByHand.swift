// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bindings: hand-written loops for exactly these streams, with libc's search functions. They assume that lines end with
// LF, that no line is too long and that fields have one space; the loops do not check it.

import Curlew
import FoundationEssentials
import Glibc

/// Calls a closure with each line of the chunks, and joins lines that the chunks split.
private func forEachLine(of chunks: [ByteChunk], _ take: (UnsafeRawBufferPointer) throws -> Void) rethrows {
    var rest: [UInt8] = []
    for chunk in chunks {
        try chunk.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return }
            var start = 0
            while let found = memchr(base + start, 0x0A, bytes.count - start) {
                let end = UnsafeRawPointer(found) - base
                if rest.isEmpty {
                    try take(UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
                } else {
                    rest.append(contentsOf: bytes[start..<end])
                    try rest.withUnsafeBytes(take)
                    rest.removeAll(keepingCapacity: true)
                }
                start = end + 1
            }
            rest.append(contentsOf: bytes[start...])
        }
    }
}

func linesByHand(_ chunks: [ByteChunk]) -> Int {
    var length = 0
    forEachLine(of: chunks) { length += String(decoding: $0, as: UTF8.self).utf8.count + 1 }
    return length
}

func recordsByHand(_ chunks: [ByteChunk]) throws -> Int {
    let decoder = JSONDecoder()
    var sum = 0
    try forEachLine(of: chunks) { sum += try decoder.decode(Record.self, from: Data($0)).id }
    return sum
}

func eventsByHand(_ chunks: [ByteChunk]) -> Int {
    var (length, type, data, id) = (0, "message", "", "")
    var hasData = false
    forEachLine(of: chunks) { line in
        if line.isEmpty {
            if hasData { length += data.utf8.count + type.utf8.count + id.utf8.count }
            (type, hasData) = ("message", false)
            return
        }
        guard line.count > 3, let base = line.baseAddress else { return }
        if memcmp(base, "data: ", 6) == 0 {
            let value = String(decoding: UnsafeRawBufferPointer(rebasing: line[6...]), as: UTF8.self)
            data = hasData ? data + "\n" + value : value
            hasData = true
        } else if memcmp(base, "id: ", 4) == 0 {
            id = String(decoding: UnsafeRawBufferPointer(rebasing: line[4...]), as: UTF8.self)
        } else if memcmp(base, "event: ", 7) == 0 {
            type = String(decoding: UnsafeRawBufferPointer(rebasing: line[7...]), as: UTF8.self)
        }
    }
    return length
}
