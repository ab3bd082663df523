// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The structs of zlib's and zstd's stable interfaces. The libraries are opened at run time, so neither their headers
// nor their development packages are needed.
#ifndef CURLEW_CODINGS_H
#define CURLEW_CODINGS_H

#include <stddef.h>
#include <stdint.h>

/// zlib's `z_stream`, unchanged since zlib 1.0 (zlib.h).
typedef struct {
    const uint8_t *next_in;
    unsigned int avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned int avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *zalloc;
    void *zfree;
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
} curlew_z_stream;

/// zstd's `ZSTD_inBuffer` (zstd.h).
typedef struct {
    const void *src;
    size_t size;
    size_t pos;
} curlew_zstd_input;

/// zstd's `ZSTD_outBuffer` (zstd.h).
typedef struct {
    void *dst;
    size_t size;
    size_t pos;
} curlew_zstd_output;

#if defined(__LP64__)
_Static_assert(sizeof(curlew_z_stream) == 112, "zlib checks this size when a stream is initialised");
_Static_assert(offsetof(curlew_z_stream, msg) == 48, "z_stream is laid out as in zlib.h");
_Static_assert(offsetof(curlew_z_stream, adler) == 96, "z_stream is laid out as in zlib.h");
_Static_assert(sizeof(curlew_zstd_input) == 24 && sizeof(curlew_zstd_output) == 24, "as in zstd.h");
#endif

#endif
