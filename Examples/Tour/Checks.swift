// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// An unexpected result, which ends the tour.
struct UnexpectedResult: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func expect<Value: Equatable>(_ what: String, _ found: Value, is expected: Value) throws {
    guard found == expected else { throw UnexpectedResult("\(what) differs: expected \(expected), found \(found)") }
}

/// Runs an operation and returns its error; nil if it succeeds.
func failure(of operation: () async throws -> Void) async -> NetworkError? {
    do {
        try await operation()
        return nil
    } catch {
        return error as? NetworkError
    }
}

/// Returns whether a wait ends successfully in time; cancels the wait otherwise.
func within(_ limit: Duration, _ wait: @escaping @Sendable () async -> Bool) async -> Bool {
    await withTaskGroup(of: Bool.self) { group in
        group.addTask { await wait() }
        group.addTask {
            try? await Task.sleep(for: limit)
            return false
        }
        defer { group.cancelAll() }
        return await group.next() ?? false
    }
}

/// Prints to standard output and flushes it, even if it is a file or a pipe.
func say(_ lines: String..., terminator: String = "\n") {
    print(lines.joined(separator: "\n"), terminator: terminator)
    fflush(nil)
}

/// Prints to standard error.
func complain(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    write(STDERR_FILENO, bytes, bytes.count)
}
