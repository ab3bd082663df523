// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the first directory of a TIFF file, and counts the directories in its chain (TIFF 6.0, §2).
///
/// A directory may lie anywhere. The reader goes forward through the file, and back only within its first 64 KiB. It
/// stops counting at a directory that lies before, at one that has been counted, and at the maximum.
struct TIFFHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case start, count, entry, link, bits
    }

    let keptBytes = Self.maximumKept
    private static let maximumKept = 65_536

    let format = ImageFormat.tiff
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 8)
    private let maximumFrames: Int
    private var step = Step.start
    private var order = ByteOrder.little
    private var pages = 0
    /// The offset of the current directory, and the end of the last entry read.
    private var directory = 0
    private var end = 0
    /// The number of entries of the first directory that are not read yet.
    private var entries = 0
    /// The offset of the next directory, or 0.
    private var next = 0
    /// A bit for each offset of a counted directory within the kept bytes, through which all loops pass.
    private var visited: [UInt64] = []
    private var found: [TIFFEntry.Tag: TIFFEntry] = [:]

    init(maximumFrames: Int) { self.maximumFrames = maximumFrames }

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        switch step {
        case .start:
            order = bytes[0] == UInt8(ascii: "I") ? .little : .big
            guard bytes.number(at: 2, bytes: 2, order) == 42 else {
                throw ImageError(
                    .unsupportedFormat, format: .tiff, "The file is a BigTIFF file.",
                    hint: "Save the image as TIFF without 64-bit offsets.")
            }
            next = bytes.number(at: 4, bytes: 4, order)
            guard next >= 8 else { throw malformed("it has no directory.") }
            awaitDirectory()
        case .count: try readCount(bytes.number(at: 0, bytes: 2, order))
        case .entry:
            if let entry = TIFFEntry(bytes, order), found[entry.tag] == nil { found[entry.tag] = entry }
            end += 12
            entries -= 1
            (step, need) = entries == 0 ? (.link, HeaderNeed(end, 4)) : (.entry, HeaderNeed(end, 12))
        case .link: try readLink(bytes.number(at: 0, bytes: 4, order))
        case .bits:
            try readHeader(bits: bytes.number(at: 0, bytes: bytes.count, order))
            awaitDirectory()
        }
    }

    /// Awaits the next directory, or ends with the last.
    private mutating func awaitDirectory() {
        header?.frames = .atLeast(pages)
        if next == 0 || isVisited(next) {
            endCount()
            need = nil
        } else if pages == maximumFrames {
            need = nil
        } else {
            visit(next)
            directory = next
            (step, need) = (.count, HeaderNeed(directory, 2))
        }
    }

    private mutating func readCount(_ count: Int) throws(ImageError) {
        guard count > 0 else { throw malformed("a directory is empty.") }
        pages += 1
        end = directory + 2
        if header == nil {
            entries = count
            (step, need) = (.entry, HeaderNeed(end, 12))
        } else {
            (step, need) = (.link, HeaderNeed(end + 12 * count, 4))
        }
    }

    private mutating func readLink(_ offset: Int) throws(ImageError) {
        next = offset
        if header == nil {
            // The bits of several channels lie elsewhere, usually near the directory.
            if let bits = found[.bitsPerSample], bits.value == nil, isReachable(bits) {
                (step, need) = (.bits, HeaderNeed(bits.offset, bits.size))
                return
            }
            try readHeader(bits: found[.bitsPerSample].map { $0.value ?? 8 } ?? 1)
        }
        awaitDirectory()
    }

    private func isReachable(_ bits: TIFFEntry) -> Bool {
        let end = self.end + 4
        return bits.offset + bits.size <= Self.maximumKept || end...end + Self.maximumKept ~= bits.offset
    }

    private mutating func readHeader(bits: Int) throws(ImageError) {
        guard let width = found[.width]?.value, let height = found[.height]?.value else {
            throw malformed("its first directory has no size.")
        }
        var image = try ImageHeader(.tiff, width: width, height: height)
        image.orientation = found[.orientation]?.value.flatMap(ImageHeader.Orientation.init) ?? .up
        // Photometric interpretation 3 is a palette.
        image.bitsPerChannel = found[.photometric]?.value == 3 ? 8 : min(16, max(1, bits))
        // Extra samples that are alpha have the values 1 and 2 (§18); with more than two the values lie elsewhere.
        image.hasAlpha = found[.extraSamples].map { $0.value.map { 1...2 ~= $0 } ?? true } ?? false
        header = image
    }

    private func isVisited(_ offset: Int) -> Bool {
        offset < Self.maximumKept && !visited.isEmpty && visited[offset / 64] >> (offset % 64) & 1 == 1
    }

    private mutating func visit(_ offset: Int) {
        guard offset < Self.maximumKept else { return }
        if visited.isEmpty { visited = Array(repeating: 0, count: Self.maximumKept / 64) }
        visited[offset / 64] |= 1 << (offset % 64)
    }
}
