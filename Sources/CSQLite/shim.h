// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CSQLITE_SHIM_H
#define CURLEW_CSQLITE_SHIM_H
#include <sqlite3.h>

/// Binds a copy of a text. Swift does not import `SQLITE_TRANSIENT`, because it is a cast of a number to a function.
static inline int curlew_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}

/// Binds a copy of bytes.
static inline int curlew_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}
#endif
