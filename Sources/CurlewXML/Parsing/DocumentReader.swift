// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// Leads a document from its bytes to libxml2, in whatever pieces it comes.
final class DocumentReader {
    private let context: ParserContext
    private let limits: XMLLimits
    private var characters: CharacterStream
    private var scanner: MarkupScanner
    /// Characters that libxml2 has not got yet.
    private var pending: [UInt8] = []
    /// How many it has got.
    private(set) var count = 0
    /// Where it stands.
    private var line = 1
    private var column = 1
    /// Why nothing is read any more.
    private(set) var failure: XMLError?

    /// - Parameters:
    ///   - context: Gets the characters.
    ///   - charset: What the server says.
    init(_ context: ParserContext, charset: String?) {
        self.context = context
        limits = context.limits
        characters = CharacterStream(charset: charset)
        scanner = MarkupScanner(
            mostAttributes: limits.attributes, longestMarkup: Int(clamping: limits.markup.bytes))
    }

    /// Reads on; what is wrong is known by `failure`.
    func take(_ bytes: some Sequence<UInt8>) {
        let bytes = Array(bytes)
        var start = 0
        // In steps: libxml2 takes no more than 10 MB at once, and what waits is moved with each section.
        while failure == nil, start < bytes.count {
            let end = min(bytes.count, start + parsingStep)
            characters.append(bytes[start..<end], to: &pending)
            advance()
            start = end
        }
    }

    /// Reads the end.
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
                // Apostrophes in them make libxml2 miss the end of the declaration.
                for aside in scanner.takeAsides() {
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
                fail(.limit("A tag, comment or the like is longer than \(limits.markup)", "markup"))
            }
        }
        if let error = characters.failure { fail(error) }
    }

    /// Lets libxml2 say what is wrong with the last of these bytes.
    private func refuse() {
        feed(scanner.position, isLast: true)
        fail(XMLError(.malformed, "There is “<” or “&” where it cannot be.", hint: "Write &lt; or &amp; for them."))
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
