// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The place of the largest image in a Windows icon file.
struct IconDirectory {
    /// The bytes of the image, which may end after the file; nil without an image.
    let image: Range<Int>?
    /// Whether the image is stored as PNG, which gdk-pixbuf does not read in such files.
    let isPNG: Bool

    /// Reads the directory: 6 bytes, then 16 bytes for each image, in little-endian order.
    ///
    /// Of images with the same size, the one with more bits for each pixel counts, then the first one. A cursor
    /// file has the hotspot in this field, so the first image counts.
    init(_ file: [UInt8]) {
        func number(_ position: Int, _ count: Int) -> Int {
            (0..<count).reversed().reduce(0) { $0 << 8 | Int(file[position + $1]) }
        }
        var best: (rank: Int, bytes: Range<Int>)?
        let count = file.count >= 6 ? number(4, 2) : 0
        for entry in 0..<count {
            let start = 6 + entry * 16
            guard start + 16 <= file.count else { break }
            // A side of 256 pixels is stored as 0.
            let width = file[start] == 0 ? 256 : Int(file[start])
            let height = file[start + 1] == 0 ? 256 : Int(file[start + 1])
            let depth = number(2, 2) == 1 ? number(start + 6, 2) : 0
            let offset = number(start + 12, 4)
            let rank = width * height << 16 + depth
            if rank > best?.rank ?? -1 { best = (rank, offset..<(offset + number(start + 8, 4))) }
        }
        image = best?.bytes
        isPNG = best.map { file.dropFirst($0.bytes.lowerBound).starts(with: [0x89, 0x50, 0x4E, 0x47]) } ?? false
    }
}
