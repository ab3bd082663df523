// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CSQLITE_SHIM_H
#define CURLEW_CSQLITE_SHIM_H
#include <sqlite3.h>
#include <stdint.h>

/// Binds a copy of a text. Swift does not import `SQLITE_TRANSIENT`, because it is a cast of a number to a function.
static inline int curlew_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int count) {
    return sqlite3_bind_text(statement, index, text, count, SQLITE_TRANSIENT);
}

/// Binds a copy of bytes.
static inline int curlew_sqlite_bind_blob(sqlite3_stmt *statement, int index, const void *bytes, int count) {
    return sqlite3_bind_blob(statement, index, bytes, count, SQLITE_TRANSIENT);
}

/// Returns a number in memory that several processes share.
static inline uint64_t curlew_shared_load(const uint64_t *number) { return __atomic_load_n(number, __ATOMIC_ACQUIRE); }

/// Adds one to a number in memory that several processes share.
static inline void curlew_shared_increment(uint64_t *number) { __atomic_add_fetch(number, 1, __ATOMIC_ACQ_REL); }
#endif
