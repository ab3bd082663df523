// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CXML2
internal import Curlew

/// A parser that makes events from libxml2's callbacks.
final class EventContext: ParserContext {
    private enum Kind {
        case text, cdata
    }

    /// The events that the caller has not taken yet.
    var events: [XMLEvent] = []
    private var text: [UInt8] = []
    private var kind = Kind.text
    private var names = NameTable()
    private let maximumTextLength: Int

    init(_ limits: XMLLimits) throws(XMLError) {
        maximumTextLength = Int(clamping: limits.textPiece.bytes)
        // Without this option, values keep "&#38;" for "&". The option expands nothing else, because no entities are
        // defined.
        try super.init(limits, options: XML_PARSE_NOENT) { handler in
            handler.startElementNs = {
                state, local, prefix, uri, namespaceCount, namespaces, count, defaulted, attributes in
                guard let local else { return }
                let tag = StartTag(
                    local: local, prefix: prefix, uri: uri, namespaceCount: Int(namespaceCount), namespaces: namespaces,
                    attributeCount: Int(count), defaultedCount: Int(defaulted), attributes: attributes)
                EventContext.of(state)?.start(tag)
            }
            handler.endElementNs = { state, local, prefix, uri in EventContext.of(state)?.end(local, prefix, uri) }
            handler.characters = { state, start, count in EventContext.of(state)?.append(start, count, .text) }
            handler.ignorableWhitespace = handler.characters
            handler.cdataBlock = { state, start, count in EventContext.of(state)?.append(start, count, .cdata) }
            handler.comment = { state, text in EventContext.of(state)?.add { .comment(text?.text ?? "") } }
            handler.processingInstruction = { state, target, content in
                EventContext.of(state)?.add {
                    .processingInstruction(target: target?.text ?? "", content: content?.text ?? "")
                }
            }
        }
    }

    private static func of(_ state: UnsafeMutableRawPointer?) -> EventContext? {
        state.map { Unmanaged<EventContext>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Ends the section's event, so that a section right after it becomes a separate event.
    override func endSection() { if case .cdata = kind { flush() } }

    override func endText() { if failure == nil { flush() } }

    private func add(_ event: () -> XMLEvent) {
        guard failure == nil else { return }
        flush()
        events.append(event())
    }

    private func start(_ tag: StartTag) {
        guard admit(tag) else { return }
        flush()
        var attributes: [XMLAttribute] = []
        attributes.reserveCapacity(tag.attributeCount)
        for index in 0..<tag.attributeCount {
            guard let local = tag.attribute(index, 0), let value = tag.attribute(index, 3) else { continue }
            let bytes = UnsafeBufferPointer(start: value, count: tag.length(at: index))
            let name = names.name(local, tag.attribute(index, 1), tag.attribute(index, 2))
            attributes.append(XMLAttribute(name, String(decoding: bytes, as: UTF8.self)))
        }
        let namespaces = (0..<tag.namespaceCount).map { index in
            XMLNamespace(
                prefix: tag.namespaces?[2 * index]?.text, uri: tag.namespaces?[2 * index + 1]?.text ?? "")
        }
        let name = names.name(tag.local, tag.prefix, tag.uri)
        events.append(.startElement(XMLStartTag(name, attributes: attributes, namespaces: namespaces)))
    }

    private func end(
        _ local: UnsafePointer<xmlChar>?, _ prefix: UnsafePointer<xmlChar>?, _ uri: UnsafePointer<xmlChar>?
    ) {
        guard let local, leave() else { return }
        flush()
        events.append(.endElement(names.name(local, prefix, uri)))
    }

    // MARK: Text

    private func append(_ start: UnsafePointer<xmlChar>?, _ count: Int32, _ kind: Kind) {
        guard failure == nil, count > 0 else { return }
        if kind != self.kind { flush() }
        self.kind = kind
        text += UnsafeBufferPointer(start: start, count: Int(count))
        while text.count > maximumTextLength {
            var end = maximumTextLength
            while text[end] & 0xC0 == 0x80 { end -= 1 }
            emit(text[..<end])
            text.removeFirst(end)
        }
    }

    /// Turns the rest of the text into an event.
    private func flush() {
        if text.isEmpty { return }
        emit(text[...])
        text.removeAll(keepingCapacity: true)
    }

    private func emit(_ bytes: ArraySlice<UInt8>) {
        let piece = String(decoding: bytes, as: UTF8.self)
        events.append(kind == .text ? .text(piece) : .cdata(piece))
    }
}

/// A cache of names, because the names of a document repeat.
///
/// The key is the addresses of a name's parts in libxml2's dictionary.
private struct NameTable {
    private struct Entry {
        let local: UnsafePointer<xmlChar>
        let prefix: UnsafePointer<xmlChar>?
        let uri: UnsafePointer<xmlChar>?
        let name: XMLName
    }

    private var entries = [Entry?](repeating: nil, count: 256)

    /// Returns the name with the given parts from the cache, or makes it.
    ///
    /// The parts are strings of libxml2's dictionary, which keeps them as long as the parser lives.
    mutating func name(
        _ local: UnsafePointer<xmlChar>, _ prefix: UnsafePointer<xmlChar>?, _ uri: UnsafePointer<xmlChar>?
    ) -> XMLName {
        let place = Int(bitPattern: local) &+ Int(bitPattern: uri) &* 5 &+ Int(bitPattern: prefix) &* 3
        let index = (place >> 2 ^ place >> 10) & (entries.count - 1)
        if let found = entries[index], found.local == local, found.prefix == prefix, found.uri == uri {
            return found.name
        }
        let name = XMLName(local.text, prefix: prefix?.text, namespace: uri?.text)
        entries[index] = Entry(local: local, prefix: prefix, uri: uri, name: name)
        return name
    }
}
