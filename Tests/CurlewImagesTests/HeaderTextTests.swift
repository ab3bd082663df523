// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import CurlewImages

/// SVG (SVG 2, CSS Images 3, CSS Values 3) and XBM.
@Suite struct HeaderTextTests {
    /// Attributes, and the size of the viewport; nil for the default of browsers.
    static let sizes: [(String, Int, Int)] = [
        ("", 300, 150), ("width='10' height='20'", 10, 20), ("width=\"10.2\" height='20.0'", 11, 20),
        ("width='+1e2px' height=' 2E+1 '", 100, 20), ("width='.5' height='5.'", 1, 5),
        ("width='1e-1' height='1em'", 1, 16),
        // Units (CSS Values 3, §5.2).
        ("width='72pt' height='6pc'", 96, 96), ("width='2.54cm' height='25.4mm'", 96, 96),
        ("width='1in' height='101.6Q'", 96, 96), ("width='2EM' height='1PX'", 32, 1),
        ("width='2rem' height='2ex'", 32, 16),
        ("width='10mm' height='3ch'", 38, 24),
        // Missing, relative and invalid sides.
        ("width='50' ", 50, 150), ("height='50'", 300, 50), ("width='100%' height='50'", 300, 50),
        ("width='-5' height='5'", 300, 5), ("width='5parsec' height='5'", 300, 5), ("width='px' height='5'", 300, 5),
        ("width='' height='5'", 300, 5), ("width='1 2' height='-'", 12, 150), ("width='1e999' height='.'", 300, 150),
        ("Width='5' x:height='5'", 300, 150), ("width='7' width='8'", 7, 150),
        // The viewBox has the ratio, or the size.
        ("viewBox='0 0 30 10'", 30, 10), ("viewBox=' -1,-2 , 30.5\n10 '", 31, 10),
        ("viewBox='0 0 30 10' width='60'", 60, 20),
        ("viewBox='0 0 30 10' height='60'", 180, 60), ("viewBox='0 0 30 10' width='1' height='2'", 1, 2),
        ("viewBox='0 0 30 10' width='100%' height='100%'", 30, 10), ("viewBox='0 0 30'", 300, 150),
        ("viewBox='0 0 0 10'", 300, 150), ("viewBox='0 0 10 -1'", 300, 150), ("viewBox='0 0 a 1'", 300, 150),
        ("viewBox='0 0 1 1px'", 300, 150), ("viewBox='0 0 1 1 1'", 300, 150),
        ("a\u{E9}:b-1.c\n=\n'width=\"5\"' d=\"'>\" width\t= '5' height='6'", 5, 6),
    ]

    @Test(arguments: sizes) func svgHasTheSizeOfItsViewport(_ attributes: String, _ width: Int, _ height: Int) throws {
        for end in [">", "/>", " >"] {
            #expect(try ImageHeader(ascii("<svg \(attributes)\(end)")) == facts(.svg, width, height, alpha: true))
        }
    }

    @Test func longAttributesAreSkipped() throws {
        let name = String(repeating: "n", count: 200)
        let value = String(repeating: "v", count: 20_000)
        let text = "<svg \(name)='\(value)' width='\(value)' height='8' width='9'>"
        #expect(try ImageHeader(ascii(text)) == facts(.svg, 9, 8, alpha: true))
    }

    @Test(arguments: [
        "<svg a>", "<svg a b='1'>", "<svg a=1>", "<svg a='<'>", "<svg 'a'>", "<svg a='1\0'>", "<svg =''>",
    ])
    func tagIsChecked(_ text: String) {
        #expect(flaw(ascii(text))?.kind == .malformed)
    }

    @Test func firstTagIsBounded() throws {
        let space = { String(repeating: " ", count: SVGHeaderReader.maximumLength - $0) }
        #expect(try ImageHeader(ascii("<svg" + space(5) + ">")) == facts(.svg, 300, 150, alpha: true))
        #expect(flaw(ascii("<svg" + space(4) + ">"))?.kind == .tooLarge)
        #expect(ImageFormat(signature: ascii("<" + String(repeating: "a", count: 129) + ":svg>")) == nil)
    }

    @Test func xbmDefinesItsSize() throws {
        let text = "#define a_width 31 #define b 5\n#define a_y_hot -1\n#define a_height 7\n"
        #expect(try ImageHeader(ascii(text)) == facts(.xbm, 31, 7, bits: 1))
        #expect(
            try ImageHeader(ascii("#define a_width 31\n/* / ** */#define _height 07 ")) == facts(.xbm, 31, 7, bits: 1))
        let damaged = [
            "static char", "#define a_height x\n", "#define a_height -1\n", "\0", "\u{E9}",
            String(repeating: " ", count: 5000),
            "#define " + String(repeating: "a", count: 129),
        ]
        for text in damaged { #expect(flaw(ascii("#define a_width 31\n" + text))?.kind == .malformed, "\(text)") }
    }
}
