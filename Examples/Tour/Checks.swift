// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import Curlew
import Glibc

/// Something was not as it must be; ends the tour.
struct Difference: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

func expect<Value: Equatable>(_ what: String, _ found: Value, is expected: Value) throws {
    guard found == expected else { throw Difference("\(what) differs: expected \(expected), found \(found)") }
}

/// The error that an operation ends with; nil when it succeeds.
func failure(of operation: () async throws -> Void) async -> NetworkError? {
    do {
        try await operation()
        return nil
    } catch {
        return error as? NetworkError
    }
}

/// Whether a wait came to its end in time; it is cancelled when not.
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

/// Prints to standard output at once, also when that is a file or a pipe.
func say(_ lines: String..., terminator: String = "\n") {
    print(lines.joined(separator: "\n"), terminator: terminator)
    fflush(nil)
}

/// Prints to standard error.
func complain(_ text: String) {
    let bytes = Array((text + "\n").utf8)
    write(STDERR_FILENO, bytes, bytes.count)
}
