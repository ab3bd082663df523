// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// The rules for all formats: pieces, prefixes, ends and bounds.
@Suite struct HeaderScannerTests {
    /// Scans a file in pieces; the header is nil if the scanner throws.
    private func scan(_ bytes: [UInt8], by size: Int, isWhole: Bool = false) throws -> ImageHeader.Scanner {
        var scanner = ImageHeader.Scanner()
        for start in stride(from: 0, to: bytes.count, by: size) {
            try scanner.append(bytes[start..<min(start + size, bytes.count)])
        }
        if isWhole { try scanner.finish() }
        return scanner
    }

    @Test(arguments: try HeaderSample.all())
    func headerDoesNotDependOnPieces(_ sample: HeaderSample) throws {
        #expect(try ImageHeader(sample.bytes) == sample.header)
        #expect(try ImageHeader(sample.bytes.lazy.map { $0 }) == sample.header)
        #expect(ImageFormat(signature: sample.bytes) == sample.header.format)
        for size in [1, 2, 3, 7, 64, sample.bytes.count] {
            let scanner = try scan(sample.bytes, by: size)
            #expect(scanner.header == sample.header && scanner.isComplete, "pieces of \(size) bytes")
        }
        // Bytes behind the end have no effect.
        var scanner = try scan(sample.bytes + sample.bytes, by: 5, isWhole: true)
        try scanner.append(sample.bytes)
        #expect(scanner.header == sample.header && scanner.keptBytes == 0)
    }

    /// Each prefix has no header, or one with the right size; when it is complete, all of it is right.
    @Test(arguments: try HeaderSample.all())
    func prefixesHaveNoWrongHeader(_ sample: HeaderSample) throws {
        for count in 0..<sample.bytes.count {
            let prefix = Array(sample.bytes.prefix(count))
            var scanner = try scan(prefix, by: 1)
            guard let header = scanner.header else {
                #expect(flaw(prefix)?.kind == .truncated)
                #expect { try scanner.finish() } throws: { ($0 as? ImageError)?.kind == .truncated }
                // The error stays.
                #expect(throws: ImageError.self) { try scanner.append(sample.bytes) }
                #expect(throws: ImageError.self) { try scanner.finish() }
                #expect(scanner.isComplete)
                continue
            }
            #expect(try ImageHeader(prefix) == header)
            let (wanted, size) = (sample.header, (header.width, header.height, header.bitsPerChannel))
            #expect(size == (wanted.width, wanted.height, wanted.bitsPerChannel) && header.format == wanted.format)
            if scanner.isComplete { #expect(header == wanted) }
            let limit = counted(wanted.frames)
            #expect(counted(header.frames) <= limit)
            try scanner.finish()
            let end = try #require(scanner.header)
            #expect(end.frames == .count(counted(end.frames)) && counted(end.frames) <= limit)
            #expect(!end.isAnimated || end.frames != .count(1))
        }
    }

    private func counted(_ frames: ImageHeader.Frames) -> Int {
        switch frames {
        case .count(let count), .atLeast(let count): count
        }
    }

    @Test func spansAreReadLikeCollections() throws {
        let bytes = joined(JPEGFile.start, JPEGFile.frame(3, 4))
        var scanner = ImageHeader.Scanner()
        try scanner.append(bytes.span)
        #expect(scanner.header == (try facts(.jpeg, 3, 4)))
        #expect(!scanner.isComplete)
    }

    /// A copy continues without an effect on the original.
    @Test func scannersAreValues() throws {
        let bytes = joined(JPEGFile.start, JPEGFile.frame(3, 4))
        var scanner = ImageHeader.Scanner()
        try scanner.append(bytes.prefix(5))
        var copy = scanner
        try copy.append(bytes.dropFirst(5))
        #expect(scanner.header == nil && copy.header != nil)
    }

    @Test func emptyInputIsTruncated() throws {
        #expect(flaw([])?.kind == .truncated)
        var scanner = ImageHeader.Scanner()
        try scanner.append([])
        #expect(scanner.header == nil && !scanner.isComplete)
    }

    @Test func errorsNameTheFormatAndTheBytes() {
        let error = flaw(Array(PNGFile.start(1, 1).prefix(20)))
        #expect(error?.format == .png)
        #expect(error?.message == "The PNG image ends after 20 bytes, before its size.")
        #expect(flaw(ascii("Not found"))?.kind == .unknownFormat)
    }

    /// Damage behind the size ends the scan, and the frames found until then are a lower limit.
    @Test func damageAfterTheSizeEndsTheScan() throws {
        let files = [
            joined(GIFFile.start(2, 2), GIFFile.image(), [0x77], GIFFile.image(), GIFFile.end),
            joined(PNGFile.start(2, 2), PNGFile.animation(3), PNGFile.control, big(1 << 31, 4), ascii("IDAT")),
            joined(PNGFile.start(2, 2), big(4, 4), ascii("ID4T")),
            WebPFile.file(WebPFile.canvas(2, 2, flags: 2), WebPFile.frame, ascii("ANMF") + big(0xFFFF_FFFF, 4)),
        ]
        for file in files {
            var scanner = try scan(file, by: 1)
            #expect(scanner.isComplete)
            #expect(scanner.header?.frames == .atLeast(1))
            try scanner.finish()
            #expect(scanner.header?.frames == .atLeast(1))
        }
    }

    @Test func countingStopsAtTheMaximum() throws {
        let frames = [[UInt8]](repeating: PNGFile.control, count: 5).flatMap { $0 }
        let file = TIFFFile()
        let size = file.directory(1, 1).count
        let pages = (0..<5).flatMap { file.directory(1, 1, next: 8 + size * ($0 + 1)) }
        let files = [
            joined(PNGFile.start(1, 1), PNGFile.animation(5), frames, PNGFile.end),
            joined(GIFFile.start(1, 1), (0..<5).flatMap { _ in GIFFile.image() }, GIFFile.end),
            WebPFile.file(WebPFile.canvas(1, 1, flags: 2), (0..<5).flatMap { _ in WebPFile.frame }),
            file.start() + pages,
        ]
        for file in files {
            for (maximum, expected) in [(3, 3), (0, 1), (-7, 1)] {
                var scanner = ImageHeader.Scanner(maximumFrames: maximum)
                try scanner.append(file)
                #expect(scanner.header?.frames == .atLeast(expected))
                #expect(scanner.isComplete)
            }
        }
    }

    /// Long pixels are skipped, and a scanner keeps at most one block.
    @Test func keptBytesAreBounded() throws {
        let files = [
            joined(PNGFile.start(1, 1), big(200_000, 4), ascii("eXIf")),
            joined(PNGFile.start(1, 1), big(1 << 30, 4), ascii("IDAT")),
            joined(JPEGFile.start, [0xFF, 0xE1, 0xFF, 0xFF]),
            WebPFile.file(WebPFile.canvas(1, 1, flags: 8)) + ascii("EXIF"),
            TIFFFile().start(1 << 30), ascii("<svg a='"), ascii("<!--"), ascii("/*"),
            joined(AVIFFile.type(), big(1 << 30, 4), ascii("mdat")),
        ]
        let noise = [UInt8](repeating: 0x41, count: 10_000)
        for file in files {
            var scanner = ImageHeader.Scanner()
            try scanner.append(file)
            for _ in 0..<30 where !scanner.isComplete {
                try? scanner.append(noise)
                #expect(scanner.keptBytes <= 2 * 65_536)
            }
        }
    }

    @Test func orientationsTurnAndMirror() {
        let swapping = ImageHeader.Orientation.allCases.filter(\.swapsSides).map(\.rawValue)
        #expect(swapping == [5, 6, 7, 8])
        #expect(ImageHeader.Orientation.up.rawValue == 1 && ImageHeader.Orientation(rawValue: 9) == nil)
    }

    @Test(arguments: 1...8) func uprightSizeFollowsTheOrientation(_ number: Int) throws {
        let file = joined(JPEGFile.start, JPEGFile.exif(number), JPEGFile.frame(30, 20), JPEGFile.scan)
        let header = try ImageHeader(file)
        #expect(header.orientation.rawValue == number && header.width == 30 && header.height == 20)
        #expect(header.uprightSize == (number >= 5 ? (20, 30) : (30, 20)))
    }

    /// Sides of 0 and above 2³¹ − 1 are errors in each format that can have them.
    @Test func sizesHaveBounds() {
        let zero = [
            PNGFile.start(0, 1), PNGFile.start(1, 0), joined(JPEGFile.start, JPEGFile.frame(0, 1)),
            GIFFile.start(0, 1), GIFFile.start(1, 0), WebPFile.file(WebPFile.lossy(0, 1)), BMPFile.core(1, 0),
            BMPFile.file(40, 0, 1), BMPFile.file(40, -1, 1), TIFFFile().start() + TIFFFile().directory(1, 0),
            AVIFFile.file([AVIFFile.size(0, 1)], [1]), ascii("<svg width='0'>"),
            ascii("#define a_width 0\n#define a_height 1\n"),
        ]
        for file in zero { #expect(flaw(file)?.kind == .malformed, "\(file.prefix(4))") }
        let large = [
            PNGFile.start(1 << 31, 1), BMPFile.file(40, 1, -1 << 31), AVIFFile.file([AVIFFile.size(1, 1 << 31)], [1]),
            TIFFFile().start() + TIFFFile().directory(1, 1 << 31), ascii("<svg width='1e10'>"),
            ascii("#define a_width 99999999999999999999\n#define a_height 1\n"),
            WebPFile.file(WebPFile.canvas(1 << 24, 1 << 24, flags: 0)),
        ]
        for file in large { #expect(flaw(file)?.kind == .tooLarge, "\(file.prefix(4))") }
    }
}
