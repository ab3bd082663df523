// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import FoundationEssentials

/// A converter from the bytes of a document in any encoding to normalised UTF-8.
///
/// The output consists of whole characters, its line ends are U+000A (XML 1.0 §2.11), and it contains no byte order
/// mark and no U+0000.
struct CharacterStream {
    private enum Source {
        /// The first bytes, while the encoding is unknown.
        case unknown([UInt8])
        case utf8
        case table(Transcoder)
    }

    private let charset: String?
    private var source = Source.unknown([])
    /// The first bytes of an incomplete character.
    private var tail: [UInt8] = []
    private var isAfterReturn = false
    /// The error after the converted characters; once it is set, the stream produces no more output.
    private(set) var failure: XMLError?

    /// Creates a stream.
    ///
    /// - Parameter charset: The server's charset.
    init(charset: String?) { self.charset = charset }

    /// Appends the characters that `bytes` complete, up to the first mistake.
    mutating func append(_ bytes: some Sequence<UInt8>, to output: inout [UInt8]) {
        if failure == nil { convert(bytes, into: &output, isLast: false) }
    }

    /// Ends the input and appends the last characters.
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

    /// Removes invalid UTF-8 from the output and moves an incomplete character at its end to `tail`.
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
            .invalidEncoding, "The document contains \(what) that is invalid in \(whose).",
            hint: "The document is damaged, or its encoding is not the declared one.")
    }

    /// Normalises line ends as XML requires, and cuts the output before U+0000.
    private mutating func normalise(_ output: inout [UInt8], from start: Int) {
        var end = start
        var index = start
        while index < output.count {
            let byte = output[index]
            if byte == 0 {
                failure = XMLError(.malformed, "U+0000 is not an XML character.")
                break
            }
            // Skip the line feed after a carriage return, which has already ended the line.
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

/// A converter from one of glibc's encodings for one document.
final class Transcoder {
    let name: String
    private let converter: CharacterConverter

    /// Creates a converter.
    ///
    /// - Parameter table: glibc's name of the encoding; never a name from a document or a server.
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

    /// Appends the converted characters.
    ///
    /// - Returns: The unconverted bytes of an incomplete character, and whether the input is only incomplete; false
    ///   means that it is invalid.
    func convert(_ bytes: [UInt8], into output: inout [UInt8]) -> (bytes: [UInt8], isIncomplete: Bool) {
        let data = Data(bytes)
        var offset = 0
        let stop = converter.convert(data, from: &offset, into: &output)
        if case .end = stop { converter.finish(into: &output) }
        if case .invalid = stop { return ([], false) }
        return (Array(bytes[offset...]), true)
    }
}
