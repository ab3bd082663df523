// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// Signatures of formats (WHATWG MIME Sniffing, §6.1).
@Suite struct HeaderSignatureTests {
    @Test(
        arguments: [
            ([0x00, 0x00, 0x01, 0x00], .ico), ([0x00, 0x00, 0x02, 0x00], .ico), (ascii("BM"), .bmp),
            (ascii("GIF87a"), .gif), (ascii("GIF89a"), .gif), (ascii("RIFF\u{1}\u{2}\u{3}\u{4}WEBPVP"), .webp),
            (PNGFile.signature, .png), ([0xFF, 0xD8, 0xFF], .jpeg), (ascii("II*\0"), .tiff), (ascii("MM\0*"), .tiff),
            (ascii("II+\0"), .tiff), (ascii("MM\0+"), .tiff),
        ] as [([UInt8], ImageFormat)])
    func patternMatchesAtItsLastByte(_ pattern: [UInt8], _ format: ImageFormat) {
        #expect(ImageFormat(signature: pattern) == format)
        #expect(ImageFormat(signature: pattern + [0xFF]) == format)
        #expect(ImageFormat(signature: pattern.dropLast()) == nil)
        for index in pattern.indices where !(format == .webp && 4..<8 ~= index) {
            var other = pattern
            other[index] ^= 0x80
            #expect(ImageFormat(signature: other) == nil, "byte \(index)")
        }
    }

    @Test(arguments: [
        "", "<", "GIF88a", "RIFF1234WAVEfmt ", "<html>", "<!DOCTYPE html><html><svg/></html>", "<!doctype svg><svg>",
        "{\"a\": 1}", "%PDF-1.7", "x<svg>", "<svgs>", "<a:b:svg>", "<svg", "<?xml?><!ELEMENT a>", "<1>", "<svg&>",
        "#define a_height 1\n", "#define _width 1\n", "#define a_width x\n", "#define a_width", "#undef a_width 1\n",
        "# define a_width 1\n", "#def a_width 1\n", "/ #define a_width 1\n", "/*/ #define a_width 1\n",
        "#define \u{E9}_width 1\n",
    ])
    func otherTextsAreNoImages(_ text: String) {
        #expect(ImageFormat(signature: text.utf8) == nil)
    }

    @Test(arguments: [
        "<svg>", "<svg/>", "<svg a=''>", "\u{FEFF}<svg>", " \n\t\r<svg>",
        "<?xml version='1.0' encoding=\"UTF-8\"?><svg>",
        "<!---->\n<!-- > -- <html> --><svg>", "<!DOCTYPE svg><svg>", "<!DOCTYPE svg PUBLIC \"-//W3C>\" '>'><svg >",
        "<!DOCTYPE svg [<!ENTITY a \"]>'\"><!-- it's ]> -->]><svg>", "<x-1.\u{E9}:svg\n>", "<?a?b?><svg>",
        "<!DOCTYPE a ]><svg>",
    ])
    func svgIsTheFirstElement(_ text: String) {
        #expect(ImageFormat(signature: text.utf8) == .svg)
        for order in [ByteOrder.big, .little] {
            let units = ("\u{FEFF}" + text.drop { $0 == "\u{FEFF}" }).utf16.flatMap { unit -> [UInt8] in
                order == .big ? big(Int(unit), 2) : little(Int(unit), 2)
            }
            #expect(ImageFormat(signature: units) == .svg)
        }
    }

    @Test(arguments: [
        "#define a_width 1\n", "\n#define\ta_b_width\t12 ", "/* a **/#define a_width 1\n",
        "#define /* b */ a_width 1\n",
    ])
    func xbmDefinesItsWidthFirst(_ text: String) {
        #expect(ImageFormat(signature: text.utf8) == .xbm)
    }

    @Test(arguments: [
        ("avif", "mif1", true), ("avis", "msf1", true), ("mif1", "miafavif", true), ("msf1", "avis", true),
        ("heic", "mif1heic", false), ("isom", "mp42", false), ("mif1", "xavi", false),
    ])
    func avifHasABrand(_ major: String, _ compatible: String, isAVIF: Bool) {
        let bytes = AVIFFile.type(major, compatible)
        #expect(ImageFormat(signature: bytes) == (isAVIF ? .avif : nil))
        // Brands behind the box do not count.
        #expect(ImageFormat(signature: bytes + ascii("avif")) == (isAVIF ? .avif : nil))
    }

    @Test func brandsAreBounded() {
        let brands = String(repeating: "mif1", count: 251)
        #expect(ImageFormat(signature: AVIFFile.type("mif1", brands + "avif")) == .avif)
        #expect(ImageFormat(signature: AVIFFile.type("mif1", brands + "mif1avif")) == nil)
        // The minor version is no brand, and a box has a size.
        #expect(ImageFormat(signature: joined(big(20, 4), ascii("ftypmif1avifmif1"))) == nil)
        for size in [0, 1, 8, 11] { #expect(ImageFormat(signature: big(size, 4) + ascii("ftypavif")) == nil) }
        #expect(ImageFormat(signature: big(20, 4) + ascii("moovavif")) == nil)
    }

    @Test func byteOrderMarksAreWhole() {
        for bytes in [[0xEF, 0xBB, 0x3C], [0xFE, 0x3C], [0xFF, 0x3C], [0xEF, 0x3C]] as [[UInt8]] {
            #expect(ImageFormat(signature: bytes + ascii("<svg>")) == nil)
        }
    }

    @Test func longestSignatureHasAsManyBytesAsDocumented() {
        for (text, format) in [("<svg>", ImageFormat.svg), ("#define a_width 1\n", .xbm)] {
            let space = String(repeating: " ", count: ImageFormat.signatureLength - text.utf8.count)
            #expect(ImageFormat(signature: (space + text).utf8) == format)
            #expect(ImageFormat(signature: (space + " " + text).utf8) == nil)
            #expect(flaw(ascii(space + " " + text))?.kind == .unknownFormat)
        }
    }

    @Test func namesAndTypesOfFormats() {
        #expect(
            ImageFormat.allCases.map(\.description) == [
                "PNG", "JPEG", "GIF", "WebP", "BMP", "ICO", "TIFF", "AVIF", "SVG", "XBM",
            ])
    }
}
