// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewSupport

/// Whether a transfer of several runs has ended, for runs of it that are still active.
package final class TransferCourse: Sendable {
    private let over: Lock<Bool>

    package init(isOver: Bool) { over = Lock(isOver) }

    package var isOver: Bool { over.withLock { $0 } }

    package func end() { over.withLock { $0 = true } }
}
