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
        var best: (rank: Int, bytes: Range<Int>)?
        let count = file.count >= 6 ? file.number(at: 4, bytes: 2, .little) : 0
        for entry in 0..<count {
            let start = 6 + entry * 16
            guard start + 16 <= file.count else { break }
            // A side of 256 pixels is stored as 0.
            let width = file[start] == 0 ? 256 : Int(file[start])
            let height = file[start + 1] == 0 ? 256 : Int(file[start + 1])
            let depth = file.number(at: 2, bytes: 2, .little) == 1 ? file.number(at: start + 6, bytes: 2, .little) : 0
            let offset = file.number(at: start + 12, bytes: 4, .little)
            let rank = width * height << 16 + depth
            if rank > best?.rank ?? -1 {
                best = (rank, offset..<(offset + file.number(at: start + 8, bytes: 4, .little)))
            }
        }
        image = best?.bytes
        isPNG = best.map { file.dropFirst($0.bytes.lowerBound).starts(with: [0x89, 0x50, 0x4E, 0x47]) } ?? false
    }
}
