// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// Bytes of a document in any encoding, as UTF-8: whole characters, lines ended by U+000A (XML 1.0 §2.11), no byte order
/// mark, no U+0000.
struct CharacterStream {
    private enum Source {
        /// The first bytes, while the encoding is not known.
        case unknown([UInt8])
        case utf8
        case table(Transcoder)
    }

    private let charset: String?
    private var source = Source.unknown([])
    /// The start of a character whose rest is to come.
    private var tail: [UInt8] = []
    private var isAfterReturn = false
    /// What is wrong behind all that was given; nothing comes afterwards.
    private(set) var failure: XMLError?

    /// - Parameter charset: What the server says.
    init(charset: String?) { self.charset = charset }

    /// Appends the characters that `bytes` complete, up to the first mistake.
    mutating func append(_ bytes: some Sequence<UInt8>, to output: inout [UInt8]) {
        if failure == nil { convert(bytes, into: &output, isLast: false) }
    }

    /// Says that no more bytes come.
    mutating func finish(_ output: inout [UInt8]) {
        if failure == nil { convert([], into: &output, isLast: true) }
    }

    private mutating func convert(_ bytes: some Sequence<UInt8>, into output: inout [UInt8], isLast: Bool) {
        let start = output.count
        switch source {
        case .unknown(let first): return begin(first + bytes, into: &output, isLast: isLast)
        case .utf8:
            output += tail
            output += bytes
            keepValid(&output, from: start, isLast: isLast)
        case .table(let transcoder):
            let rest = transcoder.convert(tail + bytes, into: &output)
            tail = rest.bytes
            if !rest.isIncomplete || (isLast && !tail.isEmpty) { refuse("a byte", "the encoding \(transcoder.name)") }
        }
        normalise(&output, from: start)
    }

    private mutating func begin(_ bytes: [UInt8], into output: inout [UInt8], isLast: Bool) {
        do throws(XMLError) {
            guard let found = try EncodingDetection.of(bytes, charset: charset, isWhole: isLast) else {
                source = .unknown(bytes)
                return
            }
            source = try found.table.map { table throws(XMLError) in .table(try Transcoder(table)) } ?? .utf8
            convert(bytes.dropFirst(found.markLength), into: &output, isLast: isLast)
        } catch {
            failure = error
        }
    }

    /// Drops what is no UTF-8, and keeps back a character that is not whole yet.
    private mutating func keepValid(_ output: inout [UInt8], from start: Int, isLast: Bool) {
        tail = []
        var found: UTF8.ValidationError?
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: output.span.extracting(start..<output.count))
        } catch {
            found = error
        }
        guard let error = found else { return }
        let valid = start + error.byteOffsets.lowerBound
        let isCut = error.kind == .truncatedScalar && start + error.byteOffsets.upperBound == output.count
        if isCut, !isLast {
            tail = Array(output[valid...])
        } else {
            refuse("a byte", "UTF-8")
        }
        output.removeSubrange(valid...)
    }

    private mutating func refuse(_ what: String, _ whose: String) {
        failure = XMLError(
            .invalidEncoding, "Here is \(what) that is no character of \(whose).",
            hint: "The document is damaged, or in another encoding than it or the server says.")
    }

    /// Ends lines as XML does, and everything before U+0000.
    private mutating func normalise(_ output: inout [UInt8], from start: Int) {
        var end = start
        var index = start
        while index < output.count {
            let byte = output[index]
            if byte == 0 {
                failure = XMLError(.malformed, "U+0000 is no character of XML.")
                break
            }
            // Of a pair the first has ended the line.
            if !(byte == 0x0A && isAfterReturn) {
                output[end] = byte == 0x0D ? 0x0A : byte
                end += 1
            }
            isAfterReturn = byte == 0x0D
            index += 1
        }
        output.removeSubrange(end...)
    }
}

/// One of glibc's tables, for one document.
final class Transcoder {
    let name: String
    private let converter: CharacterConverter

    /// - Parameter table: glibc's name of it; never what a document or a server said.
    /// - Throws: `.unsupportedEncoding`.
    init(_ table: String) throws(XMLError) {
        name = table
        do throws(CharacterConverter.Refusal) {
            converter = try CharacterConverter(from: table)
        } catch {
            throw XMLError(
                .unsupportedEncoding, "This machine's C library cannot read \(table).",
                hint: "Install glibc's character sets.", line: 1, column: 1)
        }
    }

    /// Appends the characters, and gives the bytes that are none: because their rest is to come, or a mistake.
    func convert(_ bytes: [UInt8], into output: inout [UInt8]) -> (bytes: [UInt8], isIncomplete: Bool) {
        let data = Data(bytes)
        var offset = 0
        let stop = converter.convert(data, from: &offset, into: &output)
        if case .end = stop { converter.finish(into: &output) }
        if case .invalid = stop { return ([], false) }
        return (Array(bytes[offset...]), true)
    }
}
