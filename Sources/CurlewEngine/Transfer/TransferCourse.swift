// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// Whether a transfer of several runs is over, for those of them that are left behind.
package final class TransferCourse: Sendable {
    private let over: Lock<Bool>

    package init(isOver: Bool) { over = Lock(isOver) }

    package var isOver: Bool { over.withLock { $0 } }

    package func end() { over.withLock { $0 = true } }
}
