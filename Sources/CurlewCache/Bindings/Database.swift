// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

/// A connection to a SQLite database; one thread at a time uses it.
final class Database {
    /// An error of SQLite.
    struct Failure: Error, CustomStringConvertible {
        let code: Int32
        let message: String

        /// Whether the file is damaged, or no database.
        var isCorrupt: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_SCHEMA].contains(code & 0xFF) }

        var description: String { "\(message) (SQLite \(code))" }
    }

    /// A value of a statement's parameter.
    enum Value {
        case integer(Int64)
        case text(String)
        case bytes([UInt8])
    }

    private let handle: OpaquePointer
    private var statements: [String: OpaquePointer] = [:]

    /// Opens a database, and creates it if the file is empty.
    ///
    /// - Parameter patience: The time in milliseconds to wait for other processes.
    init(_ path: String, patience: Int32 = 1000) throws(Failure) {
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard let opened else { throw Failure(code: SQLITE_NOMEM, message: "out of memory") }
        handle = opened
        guard code == SQLITE_OK else {
            // The deinitializer closes the handle.
            throw Self.failure(code, opened)
        }
        sqlite3_busy_timeout(handle, patience)
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(handle)
    }

    private static func failure(_ code: Int32, _ handle: OpaquePointer) -> Failure {
        Failure(code: code, message: String(cString: sqlite3_errmsg(handle)))
    }

    private func check(_ code: Int32) throws(Failure) {
        guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else { throw Self.failure(code, handle) }
    }

    /// Runs statements without parameters and results.
    func execute(_ sql: String) throws(Failure) { try check(sqlite3_exec(handle, sql, nil, nil, nil)) }

    /// Runs a statement, which is compiled once.
    ///
    /// - Parameter row: Called for each row of the result.
    func run(_ sql: String, _ values: [Value] = [], row: (Row) throws(Failure) -> Void = { _ in }) throws(Failure) {
        let statement = try statement(sql)
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1), of: statement) }
        while true {
            let code = sqlite3_step(statement)
            try check(code)
            if code == SQLITE_DONE { return }
            try row(Row(statement: statement))
        }
    }

    /// The number of rows that the last statement has changed.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// Runs a body in a transaction that excludes other writers; its changes are undone if it throws.
    func transaction<Output>(_ body: () throws(Failure) -> Output) throws(Failure) -> Output {
        try run("BEGIN IMMEDIATE")
        do {
            let output = try body()
            try run("COMMIT")
            return output
        } catch {
            // SQLite itself ends the transaction after some errors.
            try? run("ROLLBACK")
            throw error
        }
    }

    private func statement(_ sql: String) throws(Failure) -> OpaquePointer {
        if let known = statements[sql] { return known }
        var made: OpaquePointer?
        try check(sqlite3_prepare_v2(handle, sql, -1, &made, nil))
        guard let made else { throw Failure(code: SQLITE_MISUSE, message: "an empty statement") }
        statements[sql] = made
        return made
    }

    private func bind(_ value: Value, at index: Int32, of statement: OpaquePointer) throws(Failure) {
        switch value {
        case .integer(let number): try check(sqlite3_bind_int64(statement, index, number))
        case .text(let text):
            try check(curlew_sqlite_bind_text(statement, index, text, Int32(clamping: text.utf8.count)))
        case .bytes(let bytes):
            try check(curlew_sqlite_bind_blob(statement, index, bytes, Int32(clamping: bytes.count)))
        }
    }

    /// A row of a result, valid until the next one.
    struct Row {
        fileprivate let statement: OpaquePointer

        func integer(_ column: Int32) -> Int64 { sqlite3_column_int64(statement, column) }

        func bytes(_ column: Int32) -> [UInt8] {
            guard let start = sqlite3_column_blob(statement, column) else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column))))
        }
    }
}
