// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The memory that libtiff takes for a part of an image: a strip or a tile (TIFF 6.0 §3, §15).
enum TIFFStrip {
    /// Returns the largest memory for a part of the first image in bytes; 0 if the file has no directory.
    ///
    /// Of a repeated entry, the largest value counts.
    static func memory(_ file: [UInt8]) -> Int64 {
        guard file.count >= 8 else { return 0 }
        let order: ByteOrder = file[0] == UInt8(ascii: "I") ? .little : .big
        let directory = file.number(at: 4, bytes: 4, order)
        guard directory + 2 <= file.count else { return 0 }
        var values: [Int: Int] = [:]
        for entry in 0..<file.number(at: directory, bytes: 2, order) {
            let start = directory + 2 + entry * 12
            guard start + 12 <= file.count else { break }
            let tag = file.number(at: start, bytes: 2, order)
            values[tag] = max(values[tag] ?? 0, value(file, at: start, order))
        }
        func product(_ factors: Int...) -> Int64 {
            factors.reduce(Int64(1)) { result, factor in
                let (product, isHuge) = result.multipliedReportingOverflow(by: Int64(factor))
                return isHuge ? .max : product
            }
        }
        let sample = product(values[258] ?? 1, values[277] ?? 1)
        let height = values[257] ?? 0
        let rows = min(values[278] ?? height, height)
        let strip = product(values[256] ?? 0, rows)
        let tile = product(values[322] ?? 0, values[323] ?? 0)
        return product(Int(clamping: max(strip, tile)), Int(clamping: sample)) / 8
    }

    /// Returns the first value of an entry: a byte, a short or a long, in the entry or at the offset that it has.
    private static func value(_ file: [UInt8], at entry: Int, _ order: ByteOrder) -> Int {
        let size = [1: 1, 3: 2, 4: 4][file.number(at: entry + 2, bytes: 2, order)] ?? 4
        let count = file.number(at: entry + 4, bytes: 4, order)
        let isInside = count <= 4 / size
        let position = isInside ? entry + 8 : file.number(at: entry + 8, bytes: 4, order)
        return position + size <= file.count ? file.number(at: position, bytes: size, order) : 0
    }
}
