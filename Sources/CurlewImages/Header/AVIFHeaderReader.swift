// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Walks the boxes of an AVIF file: the properties of the primary item, and for a sequence its tracks (AVIF 1.1, §2 to
/// §4; ISO/IEC 23008-12, §6; ISO/IEC 14496-12, §4 and §8).
///
/// The reader enters only the containers of its table, so their depth is bounded. It goes only forward.
struct AVIFHeaderReader: HeaderReader {
    private enum Step: Sendable {
        case box, largeBox, leaf
        /// An item with its number of properties, and the numbers of the properties.
        case item, properties(item: Int)
    }

    /// A box with boxes in it, up to its end.
    private struct Container: Sendable {
        var type: String
        var end: Int
    }

    /// Containers and the boxes in them that the reader needs; the file itself has no name.
    private static let children: [String: Set<String>] = [
        "": ["ftyp", "meta", "moov"], "meta": ["pitm", "iprp"], "iprp": ["ipco", "ipma"],
        "ipco": ["ispe", "irot", "imir", "pixi", "av1C", "auxC"], "moov": ["trak"], "trak": ["tkhd", "mdia"],
        "mdia": ["hdlr", "minf"], "minf": ["stbl"], "stbl": ["stsz", "stz2"],
    ]
    /// The minimum and the maximum of the bytes that the reader needs of a box without boxes.
    private static let leaves: [String: ClosedRange<Int>] = [
        "ftyp": 4...4, "pitm": 6...8, "ispe": 12...12, "irot": 1...1, "imir": 1...1, "pixi": 6...6, "av1C": 4...4,
        "auxC": 5...64, "ipma": 8...8, "tkhd": 84...96, "hdlr": 12...12, "stsz": 12...12, "stz2": 12...12,
    ]

    let format = ImageFormat.avif
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 8)
    private var step = Step.box
    /// The containers around the current box.
    private var containers: [Container] = []
    private var type = ""
    /// The end of the current box.
    private var end = 0
    private var isSequence = false
    private var item = AVIFItem()
    private var isItemRead = false
    private var track = AVIFTrack()
    private var tracks = AVIFTrack()
    /// The items that follow in the box of associations, and the sizes of their numbers.
    private var items = 0
    private var numberSizes = (item: 2, property: 1)

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        let (start, next) = (need?.offset ?? 0, (need?.offset ?? 0) + bytes.count)
        switch step {
        case .box:
            type = String(decoding: bytes[4...], as: UTF8.self)
            let size = bytes.number(at: 0, bytes: 4)
            switch size {
            case 0: try enter(next, end: containers.last?.end ?? Int.max)
            case 1: (step, need) = (.largeBox, HeaderNeed(next, 8))
            default: try enter(next, end: start + size)
            }
        case .largeBox:
            // Offsets below 2⁵⁶ cannot overflow.
            guard bytes[0] == 0 else { throw malformed("a box has more than 2⁵⁶ bytes.") }
            try enter(next, end: start - 8 + bytes.number(at: 1, bytes: 7))
        case .leaf: try readLeaf(bytes, next)
        case .item:
            let size = numberSizes.item
            try awaitNumbers(
                .properties(item: bytes.number(at: 0, bytes: size)), next, Int(bytes[size]) * numberSizes.property)
        case .properties(let number): try readProperties(bytes, of: number, next)
        }
    }

    // MARK: Boxes

    /// Begins the content of a box: boxes, a needed leaf, or bytes to skip.
    private mutating func enter(_ start: Int, end: Int) throws(ImageError) {
        let parent = containers.last
        guard start <= end, end <= parent?.end ?? Int.max else { throw malformed("the size of a box is invalid.") }
        self.end = end
        guard Self.children[parent?.type ?? ""]?.contains(type) == true else {
            // Properties are counted.
            if parent?.type == "ipco" { try item.add(type, []) }
            return try awaitBox(end)
        }
        if let sizes = Self.leaves[type] {
            guard end - start >= sizes.lowerBound else { throw malformed("a box \(type) is too small.") }
            (step, need) = (.leaf, HeaderNeed(start, min(sizes.upperBound, end - start)))
        } else {
            containers.append(Container(type: type, end: end))
            if type == "trak" { track = AVIFTrack() }
            // The version and flags of "meta" come before its boxes.
            try awaitBox(type == "meta" ? start + 4 : start)
        }
    }

    /// Awaits the box at an offset, after the containers that have no further one.
    private mutating func awaitBox(_ offset: Int) throws(ImageError) {
        var offset = offset
        while let container = containers.last, container.end - offset < 8 {
            containers.removeLast()
            offset = container.end
            if try close(container.type) { return }
        }
        guard offset < Int.max - 16 else { throw malformed("no box states the size.") }
        (step, need) = (.box, HeaderNeed(offset, 8))
    }

    /// Handles the end of a container; returns true after the last one that is needed.
    private mutating func close(_ type: String) throws(ImageError) -> Bool {
        switch type {
        case "iprp" where item.primary != nil && item.isAssociated, "meta":
            // A file with any number of these boxes takes no more time: the first ones count.
            if !isItemRead { header = try item.header() }
            isItemRead = true
            guard isSequence else {
                if header == nil { throw malformed("its primary item has no size.") }
                need = nil
                return true
            }
            if header?.frames == .count(1) {
                header?.frames = .atLeast(1)
                header?.isAnimated = true
            }
        case "trak": tracks.merge(track)
        case "moov" where isSequence:
            guard tracks.frames > 0 else { throw malformed("it has no track with pictures.") }
            if header == nil { header = try ImageHeader(.avif, width: tracks.width, height: tracks.height) }
            header?.frames = .count(tracks.frames)
            header?.isAnimated = tracks.frames > 1
            if tracks.hasAlpha { header?.hasAlpha = true }
            need = nil
            return true
        default: break
        }
        return false
    }

    private mutating func readLeaf(_ bytes: [UInt8], _ next: Int) throws(ImageError) {
        switch type {
        case "ftyp": isSequence = bytes.has("avis") || bytes.has("msf1")
        case "pitm": item.select(bytes.number(at: 4, bytes: bytes[0] == 0 || bytes.count < 8 ? 2 : 4))
        case "ipma":
            numberSizes = (bytes[0] == 0 ? 2 : 4, bytes[3] & 1 == 0 ? 1 : 2)
            items = bytes.number(at: 4, bytes: 4)
            return try awaitItem(next)
        case "tkhd", "hdlr", "stsz", "stz2": track.read(type, bytes)
        default: try item.add(type, bytes)
        }
        try awaitBox(end)
    }

    // MARK: Associations of items with properties (ISO/IEC 23008-12, §9.3)

    private mutating func awaitItem(_ offset: Int) throws(ImageError) {
        guard items > 0 else { return try awaitBox(end) }
        items -= 1
        try awaitNumbers(.item, offset, numberSizes.item + 1)
    }

    private mutating func awaitNumbers(_ step: Step, _ offset: Int, _ count: Int) throws(ImageError) {
        guard end - offset >= count else { throw malformed("the properties of an item end early.") }
        (self.step, need) = (step, HeaderNeed(offset, count))
    }

    private mutating func readProperties(_ bytes: [UInt8], of number: Int, _ next: Int) throws(ImageError) {
        let size = numberSizes.property
        // The first bit says that the property is essential.
        let mask = size == 1 ? 0x7F : 0x7FFF
        try item.associate(
            number, stride(from: 0, to: bytes.count, by: size).map { bytes.number(at: $0, bytes: size) & mask })
        try awaitItem(next)
    }
}
