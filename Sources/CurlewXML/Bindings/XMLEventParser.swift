// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Curlew
internal import CurlewSupport
internal import CurlewSupport

/// Where a document stands that is read as events: what ``XMLEvents`` keeps from chunk to chunk.
public final class XMLEventParser: @unchecked Sendable {
    // Safe because all of it is reached through the lock alone.
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

    /// The events that some bytes complete, and what is wrong behind them.
    ///
    /// - Parameter bytes: Nil at the end.
    func parse(_ bytes: (some Sequence<UInt8>)?) -> (events: [XMLEvent], failure: XMLError?) {
        // Sequences may be of strangers, whom nobody calls inside a lock.
        let bytes = bytes.map { Array($0) }
        return lock.withLock { reading in
            if let bytes { reading.reader.take(bytes) } else { reading.reader.finish() }
            return (reading.takeEvents(), reading.reader.failure)
        }
    }
}
