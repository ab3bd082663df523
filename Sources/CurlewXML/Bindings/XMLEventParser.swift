// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport
internal import CurlewSupport

/// The parser state that ``XMLEvents`` keeps from chunk to chunk.
public final class XMLEventParser: @unchecked Sendable {
    // Safe because all state is accessed only through the lock.
    private let lock: Lock<Reading>

    private struct Reading {
        let context: EventContext
        let reader: DocumentReader

        mutating func takeEvents() -> [XMLEvent] {
            defer { context.events = [] }
            return context.events
        }
    }

    init(charset: String?, limits: XMLLimits) throws(XMLError) {
        let context = try EventContext(limits)
        lock = Lock(Reading(context: context, reader: DocumentReader(context, charset: charset)))
    }

    /// Returns the events that some bytes complete, and the error after them if there is a mistake.
    ///
    /// - Parameter bytes: The next bytes; nil at the end.
    func parse(_ bytes: (some Sequence<UInt8>)?) -> (events: [XMLEvent], failure: XMLError?) {
        // Copy the bytes outside the lock, because the sequence may run the user's code.
        let bytes = bytes.map { Array($0) }
        return lock.withLock { reading in
            if let bytes { reading.reader.take(bytes) } else { reading.reader.finish() }
            return (reading.takeEvents(), reading.reader.failure)
        }
    }
}
