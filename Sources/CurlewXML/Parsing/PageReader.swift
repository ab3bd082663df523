// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew

/// A reader that passes the bytes of an HTML page to libxml2 and accepts chunks of any size.
///
/// The page is read in steps of the same size, so neither the encoding nor the tree depends on the chunks.
final class PageReader {
    private let context: HTMLContext
    private var characters: PageCharacters
    private var scanner: PageScanner
    /// The bytes of an incomplete step.
    private var received: [UInt8] = []
    /// The UTF-8 bytes that libxml2 has not received yet.
    private var pending: [UInt8] = []
    /// The number of bytes that libxml2 has received, and the number of line ends in them.
    private var (count, lines) = (0, 0)

    /// The number of bytes to read at once.
    private let step: Int

    /// The number of bytes, from the first "<" on, that libxml2 has received and not read; always small.
    var unreadCount: Int { context.unreadCount }

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - charset: The server's charset.
    ///   - limits: The limits for the page.
    ///   - step: The number of bytes to read at once; at least ``MetaPrescan/maximumLength``, if the page may declare
    ///     its encoding.
    /// - Throws: `.outOfMemory`.
    init(charset: String?, limits: XMLLimits, step: Int = 16 << 10) throws(XMLError) {
        self.step = step
        context = try HTMLContext(limits)
        characters = PageCharacters(charset: charset)
        scanner = PageScanner(
            maximumAttributes: limits.attributes, maximumMarkupLength: Int(clamping: limits.markup.bytes),
            maximumTextLength: HTMLContext.maximumTextLength)
    }

    /// Reads the next bytes.
    ///
    /// - Throws: `.limitExceeded` or `.unsupportedEncoding`; later calls are not allowed.
    func append(_ bytes: some Sequence<UInt8>) throws(XMLError) {
        let bytes = Array(bytes)
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + step - received.count)
            received += bytes[start..<end]
            start = end
            if received.count == step { try advance(isLast: false) }
        }
    }

    /// Ends the page.
    ///
    /// - Returns: The tree, which the caller owns.
    /// - Throws: Like ``append(_:)``.
    func finish() throws(XMLError) -> HTMLTree {
        try advance(isLast: true)
        if pending.count == 1, let last = pending.first, last > 0x20, last < 0x7F {
            // libxml2 drops a single last character after a document type.
            pending = Array("&#\(last);".utf8)
        }
        try feed(pending.count, isLast: true)
        return try context.takeTree()
    }

    private func advance(isLast: Bool) throws(XMLError) {
        try characters.append(received, isLast: isLast, to: &pending)
        received.removeAll(keepingCapacity: true)
        let stop = scanner.scan(&pending)
        if count + pending.count + characters.pendingCount > context.limits.document.bytes {
            throw refusal(.limit("The page is longer than \(context.limits.document)", "document"))
        }
        try feed(scanner.complete)
        let limits = context.limits
        switch stop {
        case .starved: return
        case .tooManyAttributes:
            throw refusal(.limit("An element has more than \(limits.attributes) attributes", "attributes"))
        case .tooLong:
            throw refusal(.limit("A tag, a comment or other markup is longer than \(limits.markup)", "markup"))
        case .tooLongText: throw refusal(XMLError(.limitExceeded, "A text or a script is longer than 10 MB."))
        }
    }

    private func feed(_ length: Int, isLast: Bool = false) throws(XMLError) {
        if length == 0, !isLast { return }
        let (passed, failure) = context.feed(pending, length, isLast: isLast)
        if let failure { throw failure }
        count += length
        lines += passed
        scanner.drop(length)
        pending.removeFirst(length)
    }

    private func refusal(_ error: XMLError) -> XMLError { error.at(line: lines + 1, column: nil) }
}
