// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CURLEW_BENCH_FLOOR_H
#define CURLEW_BENCH_FLOOR_H

#include <curl/curl.h>

#include "measure.h"

/// What the process was told to do, and with which knobs.
typedef struct {
    const char *url, *ca, *form, *download;
    CURLU *curlu;
    CURLSH *share;
    struct curl_slist *fields;
    uint64_t n;
    int c, shards, http2, pace_ms, collect, file, lazy, default_capath, shared_store, new_handles;
    long buffer, upload_buffer, file_buffer, pipewait, fresh, resume;
    long long expect, upload, sync;
} job;

/// One of `c` handles, which is used again for every request.
typedef struct {
    CURL *easy;
    CURLM *multi;
    curl_mime *mime;
    uint64_t began, resume_at;
    size_t got, sent, budget;
    char *body;
} slot;

/// One epoll descriptor, whose wake-ups and libcurl's timers drive all multi handles.
void loop_open(job *work);
CURLM *loop_multi(int number);

/// Takes note that a body was read to be sent.
void loop_progress(void);

/// Waits once, and tells libcurl what happened.
void loop_turn(void);

/// Counts a handle's sockets, and forgets them when they close.
void sockets_install(CURL *easy);
uint64_t sockets_opened(void);

/// Whether a slow consumer takes that much now; if not, it will be resumed.
int pace_allows(slot *s, size_t length);

/// Verifies with one set of roots, parsed once for all connections.
void share_store(CURL *easy, const char *ca);

#endif
