// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import CurlewImages

/// Files that crash gdk-pixbuf 2.42, or that take its memory or time without a limit.
@Suite(.timeLimit(.minutes(5)))
struct ImageGuardTests {
    private func refusal(_ data: Data, _ options: DecodedImage.Options = .init()) async -> ImageError? {
        do throws(ImageError) {
            _ = try await DecodedImage(data, options: options)
            return nil
        } catch {
            return error
        }
    }

    // MARK: GIF

    /// A GIF of one black pixel whose descriptor and control extension are given.
    private func gif(_ frames: [(rectangle: [UInt8], delay: Int)], screen: UInt8 = 1) -> Data {
        var file = Array("GIF89a".utf8) + [screen, 0, screen, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
        for (rectangle, delay) in frames {
            file += [0x21, 0xF9, 4, 8, UInt8(delay & 0xFF), UInt8(delay >> 8), 0, 0, 0x2C] + rectangle
            file += [0, 2, 2, 0x44, 1, 0]
        }
        return Data(file + [0x3B])
    }

    private let pixel: [UInt8] = [0, 0, 0, 0, 1, 0, 1, 0]

    @Test func framesOutsideOfTheScreenAreRefused() async {
        // The first frame lies at x = 9 of a screen with one column.
        let outside: [UInt8] = [9, 0, 0, 0, 1, 0, 1, 0]
        #expect(await refusal(gif([(outside, 10), (pixel, 10)]))?.kind == .malformed)
        for rectangle: [UInt8] in [[0, 0, 0, 0, 2, 0, 1, 0], [0, 0, 1, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0, 1, 0]] {
            #expect(await refusal(gif([(rectangle, 10)]))?.kind == .malformed)
        }
        let huge: [UInt8] = [0, 0, 0, 0, 0xD8, 0x59, 0xD8, 0x59]
        #expect(await refusal(gif([(huge, 1)]), .init(maximumFrames: 1))?.kind == .malformed)
        #expect(await refusal(gif([(pixel, 10), (pixel, 10)])) == nil)
    }

    @Test func longAnimationsAreRefused() async {
        #expect(
            await refusal(gif([(rectangle: [UInt8], delay: Int)](repeating: (pixel, 65_535), count: 3300)))?.kind
                == .tooLarge)
        let many = gif([(rectangle: [UInt8], delay: Int)](repeating: (pixel, 1), count: GIFGuard.maximumFrames + 1))
        #expect(await refusal(many, .init(maximumFrames: 1))?.kind == .tooLarge)
    }

    @Test func blocksAreFollowedStrictly() throws {
        let file = Array(gif([(pixel, 10)]))
        for step in 1...file.count {
            var check = GIFGuard()
            var position = 0
            var passed = 0
            while position < file.count {
                let next = min(position + step, file.count)
                passed += try check.append(Array(file[position..<next]).span)
                position = next
            }
            #expect(passed == file.count)
            #expect(try check.append([1, 2, 3].span) == 0, "nothing passes after the end")
        }
        var unknown = file
        unknown[19] = 0x99
        var lengthy = file
        lengthy[21] = 5
        for damaged in [unknown, lengthy] {
            #expect(throws: ImageError.self) {
                var check = GIFGuard()
                _ = try check.append(damaged.span)
            }
        }
    }

    // MARK: PNG

    private func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(type.utf8) + data
        let sum = PNGHeaderReader.checksum(of: body[...])
        return (0..<4).map { UInt8(truncatingIfNeeded: data.count >> (24 - 8 * $0)) } + body
            + (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) }
    }

    @Test func textsOfAPNGDoNotReachTheDecoder() async throws {
        let png = Array(try await ImageSamples.png(8, 8))
        let texts = ["tEXt", "zTXt", "iTXt", "iCCP", "sPLT"].flatMap { chunk($0, Array("name\0\0value".utf8)) }
        let file = png[..<33] + texts + png[33...]
        for step in [1, 3, 10, file.count] {
            var filter = PNGFilter()
            var output: [UInt8] = []
            var rest = file[...]
            while !rest.isEmpty {
                output += filter.filtered(Array(rest.prefix(step)).span)
                rest = rest.dropFirst(step)
            }
            #expect(output == png && filter.isComplete)
            #expect(filter.filtered([1, 2].span).isEmpty, "nothing passes after the end")
        }
        #expect(try await DecodedImage(Data(file)).hasHalves)
        var cut = PNGFilter()
        _ = cut.filtered(Array(file.dropLast()).span)
        #expect(!cut.isComplete)
    }

    // MARK: TIFF

    private func tiff(_ entries: [(tag: Int, type: Int, value: Int)], isBig: Bool = false) -> [UInt8] {
        func bytes(_ number: Int, _ count: Int) -> [UInt8] {
            let little = (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
            return isBig ? little.reversed() : little
        }
        var file = Array((isBig ? "MM" : "II").utf8) + bytes(42, 2) + bytes(8, 4) + bytes(entries.count, 2)
        for (tag, type, value) in entries {
            let size = type == 3 ? 2 : 4
            file += bytes(tag, 2) + bytes(type, 2) + bytes(1, 4) + bytes(value, size) + bytes(0, 4 - size)
        }
        return file + bytes(0, 4)
    }

    @Test func memoryOfStripsAndTilesIsCounted() {
        for isBig in [false, true] {
            let strip = tiff([(256, 4, 1000), (257, 4, 1000), (258, 3, 8), (277, 3, 3000)], isBig: isBig)
            #expect(TIFFStrip.memory(strip) == 3_000_000_000)
            let rows = tiff([(256, 4, 1000), (257, 4, 1000), (258, 3, 8), (277, 3, 3), (278, 4, 10)], isBig: isBig)
            #expect(TIFFStrip.memory(rows) == 30_000)
            let tile = tiff([(256, 3, 10), (257, 3, 10), (258, 3, 16), (322, 4, 4096), (323, 4, 4096)], isBig: isBig)
            #expect(TIFFStrip.memory(tile) == 33_554_432)
        }
        let twice = tiff([(256, 4, 10), (257, 4, 10), (258, 3, 8), (277, 3, 1), (277, 3, 100)])
        #expect(TIFFStrip.memory(twice) == 10_000)
        let endless = tiff([(256, 4, 0xFFFF_FFFF), (257, 4, 0xFFFF_FFFF), (258, 4, 0xFFFF_FFFF), (277, 4, 0xFFFF_FFFF)])
        #expect(TIFFStrip.memory(endless) > Int64(1) << 58)
        #expect(TIFFStrip.memory([]) == 0 && TIFFStrip.memory(Array(strip(endless))) == 0)
    }

    private func strip(_ file: [UInt8]) -> ArraySlice<UInt8> { file.prefix(9) }

    @Test func samplesOfATIFFAreRefused() async {
        let file = tiff([
            (256, 4, 1000), (257, 4, 1000), (258, 3, 8), (262, 3, 2), (273, 4, 8), (277, 3, 3000), (279, 4, 4),
        ])
        #expect(await refusal(Data(file))?.kind == .tooLarge)
    }

    // MARK: X bitmaps

    @Test func bitmapsAreDecoded() throws {
        func pixels(_ text: String, _ width: Int, _ height: Int) throws(ImageError) -> [Bool] {
            let rgb = try XBMPixels.decode(Array(text.utf8), width: width, height: height)
            return stride(from: 0, to: rgb.count, by: 3).map { rgb[$0] == 0 }
        }
        #expect(try pixels("static char x[] = {0x05, 2};", 3, 2) == [true, false, true, false, true, false])
        #expect(try pixels("char x[]={0X01,\n 0x02}", 9, 1) == [true] + [Bool](repeating: false, count: 8))
        let word = try pixels("static short x[] = { 0x8001 };", 16, 1)
        #expect(word.first == true && word.last == true && word.filter { $0 }.count == 2)
        for text in ["", "static char x[] = {", "static char x[] = {1}", "static char x[] = {1, 0xzz}"] {
            #expect(throws: ImageError.self) { try pixels(text, 9, 1) }
        }
    }

    @Test func secondSizeOfABitmapHasNoEffect() async throws {
        let file = """
            #define x_width 8
            #define x_height 1
            #define x_width 30000
            #define x_height 30000
            static char x_bits[] = { 0xff };
            """
        let image = try await DecodedImage(Data(file.utf8))
        #expect(image.width == 8 && image.height == 1)
    }

    // MARK: Limits

    @Test func limitsOfAnySizeDoNotOverflow() async throws {
        var png = try await ImageSamples.png(4, 4)
        png.replaceSubrange(16..<24, with: [0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF])
        let sum = PNGHeaderReader.checksum(of: Array(png[12..<29])[...])
        for index in 0..<4 { png[29 + index] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * index)) }
        #expect(await refusal(png, .init(limits: .init(pixels: .max)))?.kind == .tooLarge)
    }
}
