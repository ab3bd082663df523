// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// What Swift cannot call by itself: variadic curl functions (one wrapper for each argument type), a thread born with its
// signals blocked, and descriptors that must not survive exec.
#ifndef CURLEW_ENGINE_H
#define CURLEW_ENGINE_H

#ifndef __linux__
#error "Curlew runs on Linux only: its loop is epoll, its threads are pthreads and its peers are Linux servers."
#endif

#include "curlew_codings.h"
#include "curlew_tls.h"
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>

#if LIBCURL_VERSION_NUM < 0x075800
#error "Curlew needs libcurl 7.88 or later."
#endif

// MARK: curl_easy_setopt, by argument type

static inline CURLcode curlew_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode curlew_set_offset(CURL *easy, CURLoption option, int64_t value) {
    return curl_easy_setopt(easy, option, (curl_off_t)value);
}
static inline CURLcode curlew_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode curlew_set_pointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

typedef size_t (*curlew_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef curl_socket_t (*curlew_open_callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*curlew_close_callback)(void *context, curl_socket_t descriptor);
typedef int (*curlew_seek_callback)(void *context, curl_off_t offset, int origin);
typedef CURLcode (*curlew_context_callback)(CURL *easy, void *tls, void *context);

/// A variable of the environment; NULL, too, in programs that run with more rights than their callers.
const char *curlew_trusted_variable(const char *name);

/// Sets the callbacks that never change on a pooled handle; `context` is what each of them receives.
void curlew_set_callbacks(CURL *easy, void *context, curlew_data_callback write, curlew_data_callback header,
                          curlew_data_callback read, curlew_seek_callback seek, curlew_open_callback open,
                          curlew_close_callback close, curlew_context_callback tls);

typedef int (*curlew_prerequest_callback)(void *context, char *remote, char *local, int remote_port, int local_port);

/// Sets what is called right before a request is sent; its context is that of curlew_set_callbacks.
void curlew_set_prerequest(CURL *easy, curlew_prerequest_callback prerequest, void *context);

/// What libcurl 7.88 tells in its verbose words alone: the stream of a request (HTTP/2), 0 before there is one, and the last
/// stream that the server's GOAWAY includes, if one came (RFC 9113 §6.8).
typedef struct {
    uint32_t stream;
    uint32_t last;
    bool goes_away;
} curlew_stream_words;

/// Makes libcurl tell `words` what it says; NULL makes it silent.
void curlew_listen(CURL *easy, curlew_stream_words *words);

// MARK: curl_easy_getinfo, by result type

static inline long curlew_get_long(CURL *easy, CURLINFO info) {
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : 0;
}
static inline int64_t curlew_get_offset(CURL *easy, CURLINFO info) {
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? (int64_t)value : 0;
}
static inline const char *curlew_get_string(CURL *easy, CURLINFO info) {
    const char *value = NULL;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK ? value : NULL;
}
static inline void *curlew_get_private(CURL *easy) {
    void *value = NULL;
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value) == CURLE_OK ? value : NULL;
}

// MARK: curl_multi_setopt and curl_share_setopt

typedef int (*curlew_socket_callback)(CURL *easy, curl_socket_t descriptor, int what, void *context, void *socket);
typedef int (*curlew_timer_callback)(CURLM *multi, long milliseconds, void *context);

static inline CURLMcode curlew_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
void curlew_multi_set_callbacks(CURLM *multi, void *context, curlew_socket_callback socket,
                                curlew_timer_callback timer);
static inline const curl_version_info_data *curlew_version(void) { return curl_version_info(CURLVERSION_NOW); }
static inline CURLSHcode curlew_share_tls_sessions(CURLSH *share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

// MARK: HTTP/2 streams

/// What a watcher of a thread's HTTP/2 streams is told; `user` is the pointer that libcurl gave nghttp2 for the stream.
typedef struct {
    /// libcurl begins a stream.
    void (*submitted)(void *context, void *user);
    /// A head or the end of a stream was received; `is_end` means END_STREAM.
    void (*received)(void *context, void *user, bool is_end);
} curlew_stream_calls;

/// Watches the streams of libcurl's connections on the calling thread from now on; NULL ends that.
///
/// With some builds of libcurl nothing is ever told; streams.c says with which.
void curlew_watch_streams(const curlew_stream_calls *calls, void *context);

// MARK: Threads, fork, descriptors

/// Starts a detached thread that has every signal blocked. Returns errno.
int curlew_thread_start(void *(*body)(void *), void *argument);
/// Names the calling thread (at most 15 bytes); nobody else can name a thread that may end at any time.
void curlew_thread_name(const char *name);

/// How often this process is the child of a fork since Curlew was first used; differs in a child from its parent.
uint64_t curlew_fork_generation(void);

/// Numbers that grow within the process, the first one 1.
uint64_t curlew_next_id(void);

/// Gives the memory that the allocator keeps for later back to the system; a no-op where the C library is not glibc.
void curlew_trim_heap(void);

/// Forks; in the child runs `body` and ends the process with what it returns. Gives the child's exit status.
int curlew_run_in_fork(int (*body)(void *), void *argument);

/// Marks both ends of a socket pair that libcurl made close-on-exec, given one end; the other stays as it is where the
/// kernel does not say which it is.
void curlew_close_pair_on_exec(int descriptor);
/// Sees to room for `count` bytes from `offset` on in a file whose size stays. Returns errno.
int curlew_reserve(int descriptor, int64_t offset, int64_t count);
/// Gives a file another name that nobody has. Returns errno: EEXIST when somebody has it.
int curlew_rename_new(const char *from, const char *to);
/// Finds the wake-up pair inside a CURLM, which libcurl 7.88 leaves open across exec, by what wake-ups do to it, and marks
/// it close-on-exec. No other descriptor is changed.
void curlew_close_wakeup_on_exec(CURLM *multi);

static const uint32_t curlew_readable = 0x001;
static const uint32_t curlew_writable = 0x004;
static const uint32_t curlew_failed = 0x008;
static const uint32_t curlew_hung_up = 0x010;
/// The peer sends no more.
static const uint32_t curlew_peer_closed = 0x2000;
/// Tells each event once, whether or not anything was read.
static const uint32_t curlew_once_each = 1u << 31;

/// Whether the peer of a socket sends no more and everything it sent has been read.
bool curlew_has_ended(int descriptor);
/// How many bytes that were written to a socket have not reached the peer; 0 when the system does not say.
int curlew_unsent(int descriptor);
/// Whether the peer of a socket sends no more, whatever of what it sent has been read.
bool curlew_peer_has_ended(int descriptor);
/// The local port of a socket, with bit 16 set for IPv6; -1 when it has none.
int curlew_local_port(int descriptor);
/// The port of a connected socket's peer, with bit 16 set for IPv6; -1 when it is not connected.
int curlew_remote_port(int descriptor);

/// What a TCP socket is told before it connects; 0 leaves an option as the system has it.
typedef struct {
    /// Seconds.
    int keep_idle, keep_interval;
    int keep_count;
    /// Milliseconds.
    unsigned user_timeout;
    bool fast_open;
} curlew_tcp_options;

/// Sets the options of a socket that is not connected yet; what the kernel refuses stays as it was.
void curlew_tcp_set(int descriptor, const curlew_tcp_options *options);
/// The options of a socket; false when it is none of TCP.
bool curlew_tcp_read(int descriptor, curlew_tcp_options *options);

/// The bytes of an IP address where a socket is to be connected to. Gives how many: 4, 16, or 0 when it is none.
int curlew_address_bytes(const struct curl_sockaddr *address, uint8_t bytes[16]);
/// Puts another address of the same family in its place.
void curlew_address_replace(struct curl_sockaddr *address, const uint8_t *bytes);
/// The bytes of an IP address in text. Gives how many: 4, 16, or 0 when it is none.
int curlew_address_parse(const char *text, uint8_t bytes[16]);

/// A socket that reads as closed; -1 with errno when the kernel refuses.
int curlew_dead_socket(void);
/// Closes `descriptor` and makes its number another name of `other`, close-on-exec.
bool curlew_replace(int descriptor, int other);

/// A socket that hears of changes to links, addresses and routes; -1 with errno when the kernel refuses.
int curlew_netlink_open(void);
/// Throws away what a netlink socket has to say, which is only ever a reason to look again.
void curlew_netlink_drain(int descriptor);

/// What tells a file from what it was before.
typedef struct {
    uint64_t inode;
    int64_t size, seconds, nanoseconds;
} curlew_stamp;

/// False when there is no such file.
bool curlew_file_stamp(const char *path, curlew_stamp *stamp);

int curlew_epoll_create(void);
int curlew_eventfd_create(void);
/// Adds, changes or drops (mask 0) a descriptor; `token` comes back with its events. Returns errno or 0.
int curlew_epoll_update(int epoll, int descriptor, bool known, uint32_t mask, uint64_t token);

typedef struct {
    uint64_t token;
    uint32_t mask;
} curlew_ready;

/// Waits (-1 for ever) and fills `ready`; gives how many, 0 also when a signal came.
int curlew_epoll_wait(int epoll, curlew_ready *ready, int capacity, int milliseconds);

/// Where the first of some bytes in a row begins, in time that grows with `count` alone (memmem); -1 for nowhere.
ptrdiff_t curlew_find(const void *bytes, size_t count, const void *wanted, size_t wanted_count);
/// Where the last of a byte is (memrchr); -1 for nowhere.
ptrdiff_t curlew_find_last(const void *bytes, size_t count, uint8_t wanted);

#endif
