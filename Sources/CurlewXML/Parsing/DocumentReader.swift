// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A reader that passes the bytes of a document to libxml2 and accepts chunks of any size.
final class DocumentReader {
    private let context: ParserContext
    private let limits: XMLLimits
    private var characters: CharacterStream
    private var scanner: MarkupScanner
    /// The UTF-8 bytes that libxml2 has not received yet.
    private var pending: [UInt8] = []
    /// The number of bytes that libxml2 has received.
    private(set) var count = 0
    // The current position in the document.
    private var line = 1
    private var column = 1
    /// The error that stopped the reader.
    private(set) var failure: XMLError?

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - context: The parser that gets the characters.
    ///   - charset: The server's charset.
    init(_ context: ParserContext, charset: String?) {
        self.context = context
        limits = context.limits
        characters = CharacterStream(charset: charset)
        scanner = MarkupScanner(
            maximumAttributes: limits.attributes, maximumMarkupLength: Int(clamping: limits.markup.bytes))
    }

    /// Reads the next bytes; sets `failure` if they are invalid.
    func take(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        var start = 0
        // Read in steps, because libxml2 accepts at most 10 MB at once and every section moves the pending bytes.
        while failure == nil, start < bytes.count {
            let end = min(bytes.count, start + parsingStep)
            characters.append(bytes[start..<end], to: &pending)
            advance()
            start = end
        }
    }

    /// Ends the document; sets `failure` if it is incomplete.
    func finish() {
        guard failure == nil else { return }
        characters.finish(&pending)
        advance()
        if failure == nil { feed(pending.count, isLast: true) }
    }

    private func advance() {
        var stop = MarkupScanner.Stop.section
        while failure == nil, case .section = stop {
            stop = scanner.scan(pending)
            switch stop {
            case .starved: feed(scanner.complete)
            case .section:
                // Blank out comments and instructions, because apostrophes in them make libxml2 miss the declaration's
                // end.
                for aside in scanner.takeCommentRanges() {
                    for index in aside where pending[index] != 0x0A { pending[index] = 0x20 }
                }
                feed(scanner.complete)
                context.endSection()
            case .malformed: refuse()
            case .tooManyAttributes:
                feed(scanner.complete)
                fail(.limit("An element has more than \(limits.attributes) attributes", "attributes"))
            case .tooLong:
                feed(scanner.complete)
                fail(.limit("A tag, a comment or other markup is longer than \(limits.markup)", "markup"))
            }
        }
        if let error = characters.failure { fail(error) }
    }

    /// Passes the malformed markup to libxml2, so that libxml2 reports the error.
    private func refuse() {
        feed(scanner.position, isLast: true)
        fail(XMLError(.malformed, "“<” or “&” occurs where it is not allowed.", hint: "Write &lt; or &amp; instead."))
    }

    private func feed(_ length: Int, isLast: Bool = false) {
        guard length > 0 || isLast else { return }
        let place = context.feed(pending, length, isLast: isLast)
        count += length
        scanner.drop(length)
        pending.removeFirst(length)
        if let error = context.failure {
            fail(error)
        } else if place.lines > 0 {
            line += place.lines
            column = place.column
        } else {
            column += place.column - 1
        }
    }

    private func fail(_ error: XMLError) {
        guard failure == nil else { return }
        context.endText()
        failure = error.at(line: line, column: column)
    }
}
