// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef CURLEW_BENCH_FLOOR_H
#define CURLEW_BENCH_FLOOR_H

#include <curl/curl.h>

#include "measure.h"

/// The work of the process and the optimizations to use.
typedef struct {
    const char *url, *ca, *form, *download, *proxy, *unix_socket;
    CURLU *curlu;
    CURLSH *share;
    struct curl_slist *fields, *proxy_fields;
    uint64_t n;
    int c, shards, http2, pace_ms, collect, file, lazy, default_capath, shared_store, new_handles;
    long buffer, upload_buffer, file_buffer, pipewait, fresh, resume;
    long long expect, upload, sync;
} job;

/// One of `c` handles, each reused for many requests.
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

/// Records that libcurl has read body bytes to send.
void loop_progress(void);

/// Waits once and reports the events to libcurl.
void loop_turn(void);

/// Counts a handle's sockets and removes them from the table when they close.
void sockets_install(CURL *easy);
uint64_t sockets_opened(void);

/// Returns whether a slow consumer accepts the bytes now; if not, the loop resumes it later.
int pace_allows(slot *s, size_t length);

/// Makes all connections verify with one set of roots, which is parsed only once.
void share_store(CURL *easy, const char *ca);

#endif
