// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Reads the definitions at the start of an X bitmap (X11 manual, bitmap(1), "File format").
struct XBMHeaderReader: HeaderReader {
    let format = ImageFormat.xbm
    var header: ImageHeader?
    private(set) var need: HeaderNeed? = HeaderNeed(0, 1)
    private var text = XBMText()
    private var position = 0

    mutating func read(_ bytes: [UInt8]) throws(ImageError) {
        text.push(bytes[0])
        position += 1
        need = HeaderNeed(position, 1)
        if let width = text.width, let height = text.height {
            need = nil
            header = try ImageHeader(.xbm, width: width, height: height)
            header?.bitsPerChannel = 1
        } else if text.hasEnded || position == ImageSignature.maximumLength {
            throw malformed("its definitions lack the height.")
        }
    }
}

/// Reads C definitions of numbers, byte by byte, with white space and comments between them.
struct XBMText: Sendable {
    private static let maximumLength = 128
    private static let space: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D]

    /// The value of the first definition, whose name ends in "_width".
    private(set) var width: Int?
    /// The value of the definition whose name ends in "_height".
    private(set) var height: Int?
    /// Whether the text is not that of an X bitmap, or its definitions end.
    private(set) var hasEnded = false
    private var isComment = false
    /// The last byte of a comment.
    private var last: UInt8 = 0
    private var token: [UInt8] = []
    /// The tokens of the current definition.
    private var definition: [String] = []

    mutating func push(_ byte: UInt8) {
        if hasEnded { return }
        if isComment {
            isComment = last != UInt8(ascii: "*") || byte != UInt8(ascii: "/")
            last = byte
        } else if token.elementsEqual("/".utf8), byte == UInt8(ascii: "*") {
            // "/*/" is not a complete comment.
            (isComment, token, last) = (true, [], 0)
        } else if !Self.space.contains(byte) {
            token.append(byte)
            // All tokens are printable ASCII. The first one is always the same.
            let isDefinition = !definition.isEmpty || token == Array("/".utf8) || "#define".utf8.starts(with: token)
            hasEnded = !(0x21...0x7E ~= byte) || token.count > Self.maximumLength || !isDefinition
        } else if !token.isEmpty {
            definition.append(String(decoding: token, as: UTF8.self))
            token = []
            endToken()
        }
    }

    private mutating func endToken() {
        if definition.count < 3 {
            hasEnded = definition[0] != "#define"
            return
        }
        let (name, value) = (definition[1], definition[2])
        definition = []
        let isNumber = value.utf8.allSatisfy { 0x30...0x39 ~= $0 }
        let number = isNumber ? Int(value) ?? Int.max : nil
        if width == nil {
            width = name.hasSuffix("_width") && name != "_width" ? number : nil
            hasEnded = width == nil
        } else if name.hasSuffix("_height"), height == nil {
            height = number
            hasEnded = height == nil
        }
    }
}
