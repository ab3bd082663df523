// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Functions that Swift cannot call itself: variadic curl functions (one wrapper for each argument type), the start of a
// thread with its signals blocked, and operations on descriptors that must not survive exec.
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

// Swift does not import macros with casts.
static const long curlew_auth_basic = (long)CURLAUTH_BASIC;
static const long curlew_auth_digest = (long)CURLAUTH_DIGEST;
static const long curlew_auth_negotiate = (long)CURLAUTH_NEGOTIATE;
static const long curlew_auth_ntlm = (long)CURLAUTH_NTLM;
static const long curlew_auth_bearer = (long)CURLAUTH_BEARER;

typedef size_t (*curlew_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef curl_socket_t (*curlew_open_callback)(void *context, curlsocktype purpose, struct curl_sockaddr *address);
typedef int (*curlew_close_callback)(void *context, curl_socket_t descriptor);
typedef int (*curlew_seek_callback)(void *context, curl_off_t offset, int origin);
typedef CURLcode (*curlew_context_callback)(CURL *easy, void *tls, void *context);

/// Returns an environment variable; NULL if it is unset, and in programs with more privileges than their callers.
const char *curlew_trusted_variable(const char *name);

/// Sets the callbacks that never change on a pooled handle; each of them receives `context`.
void curlew_set_callbacks(CURL *easy, void *context, curlew_data_callback write, curlew_data_callback header,
                          curlew_data_callback read, curlew_seek_callback seek, curlew_open_callback open,
                          curlew_close_callback close, curlew_context_callback tls);

typedef int (*curlew_prerequest_callback)(void *context, char *remote, char *local, int remote_port, int local_port);

/// Sets the callback before a request is sent; pass the same context as to curlew_set_callbacks.
void curlew_set_prerequest(CURL *easy, curlew_prerequest_callback prerequest, void *context);

/// Facts that libcurl 7.88 reports only in its verbose log: the HTTP/2 stream of a request, 0 before it is known, and
/// the last stream that the server's GOAWAY includes, if one arrived (RFC 9113 §6.8).
typedef struct {
    uint32_t stream;
    uint32_t last;
    bool has_goaway;
} curlew_stream_log;

/// Makes libcurl's verbose log fill `log`; NULL switches the log off.
void curlew_log_streams(CURL *easy, curlew_stream_log *log);

/// Reads one line of libcurl's verbose log, which may name the stream or the last stream of a GOAWAY.
void curlew_read_log_line(const char *text, size_t length, curlew_stream_log *log);

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

/// The callbacks of a watcher of a thread's HTTP/2 streams; `user` is the pointer that libcurl gave nghttp2 for the
/// stream.
typedef struct {
    /// libcurl starts a stream of a session.
    void (*submitted)(void *context, void *session, void *user);
    /// The peer has answered a PING.
    void (*answered)(void *context, void *session);
    /// A HEADERS frame or the end of a stream was received; `is_end` means END_STREAM.
    void (*received)(void *context, void *user, bool is_end);
} curlew_stream_callbacks;

/// Watches the streams of libcurl's connections on the calling thread; NULL ends the watch.
///
/// With some builds of libcurl the callbacks are never called; see streams.c.
void curlew_watch_streams(const curlew_stream_callbacks *calls, void *context);

/// Adds a PING frame to those that a session of this thread sends next; the session must have been reported by
/// `submitted`, and its connection must still be open. False if nghttp2 refuses.
bool curlew_ping(void *session);

// MARK: Threads, fork, descriptors

/// Starts a detached thread with all signals blocked. Returns errno.
int curlew_thread_start(void *(*body)(void *), void *argument);
/// Names the calling thread (at most 15 bytes); another thread cannot do it safely, since a detached thread may end at
/// any time.
void curlew_thread_name(const char *name);

/// Returns the number of forks between the process that first used Curlew and this one; a child's number differs from
/// its parent's.
uint64_t curlew_fork_generation(void);

/// Returns the next of a sequence of increasing numbers in this process, starting at 1.
uint64_t curlew_next_id(void);

/// Returns the allocator's free memory to the system; a no-op if the C library is not glibc.
void curlew_trim_heap(void);

/// Forks; the child runs `body` and exits with its result. Returns the child's exit status.
int curlew_run_in_fork(int (*body)(void *), void *argument);

/// Marks both ends of a socket pair created by libcurl as close-on-exec, given one end; the other end stays unchanged
/// if the kernel does not identify it.
void curlew_close_pair_on_exec(int descriptor);
/// Reserves disk space for `count` bytes from `offset` without changing the size of the file. Returns errno.
int curlew_reserve(int descriptor, int64_t offset, int64_t count);
/// Reads up to `count` bytes of a file that are in the page cache, without waiting for the disk. Returns the number of
/// bytes; 0 or less if the first of them is not there, or the file system does not support this.
ptrdiff_t curlew_read_in_memory(int descriptor, void *memory, size_t count, int64_t offset);
/// Renames a file to an unused name. Returns errno: EEXIST when the name is in use.
int curlew_rename_new(const char *from, const char *to);
/// Finds the wake-up socket pair of a CURLM by the effect of wake-ups, and marks it as close-on-exec, which libcurl
/// 7.88 does not do. No other descriptor is changed.
void curlew_close_wakeup_on_exec(CURLM *multi);

static const uint32_t curlew_readable = 0x001;
static const uint32_t curlew_writable = 0x004;
static const uint32_t curlew_failed = 0x008;
static const uint32_t curlew_hung_up = 0x010;
/// The peer has closed its sending side.
static const uint32_t curlew_peer_closed = 0x2000;
/// Edge-triggered: reports each event once, whether or not anything was read.
static const uint32_t curlew_edge_triggered = 1u << 31;

/// Whether the peer of a socket has closed its sending side and all its data has been read.
bool curlew_has_ended(int descriptor);
/// Returns the number of bytes written to a socket that have not reached the peer; 0 when it is unknown.
int curlew_unsent(int descriptor);
/// Returns the number of received bytes in the kernel's buffer; 0 when it is unknown.
int curlew_unread(int descriptor);
/// Whether the peer of a socket has closed its sending side, even if unread data remains.
bool curlew_peer_has_ended(int descriptor);
/// The local port of a socket, with bit 16 set for IPv6; -1 when it has no port.
int curlew_local_port(int descriptor);
/// The port of a connected socket's peer, with bit 16 set for IPv6; -1 when it is not connected.
int curlew_remote_port(int descriptor);

/// The options of a TCP socket before it connects; 0 leaves an option at the system's default.
typedef struct {
    /// In seconds.
    int keep_idle, keep_interval;
    int keep_count;
    /// In milliseconds.
    unsigned user_timeout;
    bool fast_open;
} curlew_tcp_options;

/// Sets the options of a socket that is not connected yet; an option that the kernel refuses stays unchanged.
void curlew_tcp_set(int descriptor, const curlew_tcp_options *options);
/// Reads the options of a socket; false when it is not a TCP socket.
bool curlew_tcp_read(int descriptor, curlew_tcp_options *options);

/// Makes a socket send and receive only over an interface. Returns errno.
int curlew_bind_interface(int descriptor, const char *name);
/// Sets the local IP address of a socket; the system chooses the port when it connects. Returns errno.
int curlew_bind_address(int descriptor, const uint8_t *bytes, int count);

/// Sets the byte of an IP socket that carries the DSCP and the ECN bits (RFC 2474), for both families; a byte that the
/// kernel refuses stays unchanged.
void curlew_set_traffic_class(int descriptor, int value);

/// Copies the bytes of the IP address that a socket will connect to. Returns their number: 4, 16, or 0 for another
/// family.
int curlew_address_bytes(const struct curl_sockaddr *address, uint8_t bytes[16]);
/// Returns the port that a socket will connect to; 0 for another family.
uint16_t curlew_address_port(const struct curl_sockaddr *address);
/// Replaces the address with another one of the same family, and the port unless `port` is 0.
void curlew_address_replace(struct curl_sockaddr *address, const uint8_t *bytes, uint16_t port);
/// Parses an IP address. Returns the number of bytes: 4, 16, or 0 when the text is not an IP address.
int curlew_address_parse(const char *text, uint8_t bytes[16]);

/// Creates a non-blocking TCP socket for an address of 4 or 16 bytes; -1 with errno on failure.
int curlew_stream_socket(int count);
/// Starts to connect a non-blocking socket. Returns 0 if the socket is connected or connecting, otherwise errno.
int curlew_connect(int descriptor, const uint8_t *bytes, int count, uint16_t port);
/// Returns and clears the pending error of a socket; 0 if there is no error.
int curlew_socket_error(int descriptor);

/// Creates a socket whose peer is closed; -1 with errno on failure.
int curlew_dead_socket(void);
/// Closes `descriptor` and makes its number a duplicate of `other`, close-on-exec.
bool curlew_replace(int descriptor, int other);

/// Creates a socket that receives changes of links, addresses, routes and routing rules; -1 with errno on failure.
int curlew_netlink_open(void);
/// Discards the messages of a netlink socket; they only signal that the state must be read again. Returns whether links
/// or addresses may have changed, and not only routes and rules.
bool curlew_netlink_drain(int descriptor);

/// A network interface.
typedef struct {
    uint32_t index;
    /// The flags of netdevice(7), such as IFF_UP.
    uint32_t flags;
    /// The type of the hardware, such as ARPHRD_ETHER.
    uint16_t type;
    char name[16];
    /// The kernel's name of the driver of a virtual interface, such as "tun"; empty for hardware.
    char kind[16];
} curlew_link;

/// An IP address of an interface.
typedef struct {
    uint32_t index;
    /// 4 or 16.
    uint8_t count;
    /// The scope of rtnetlink(7): 0 for addresses that are valid everywhere, 253 for one link, 254 for this machine.
    uint8_t scope;
} curlew_link_address;

/// Calls one function for each interface and another one for each address; returns 0, EAGAIN when a table changed while
/// it was read, or errno.
int curlew_netlink_read(void *context, void (*link)(void *context, const curlew_link *link),
                        void (*address)(void *context, const curlew_link_address *address));

/// Returns the index of an interface; 0 when it does not exist.
uint32_t curlew_link_number(const char *name);

/// The route to an address.
typedef struct {
    /// The index of the interface; 0 when the kernel has no usable route.
    uint32_t index;
    /// The name of the interface.
    char name[16];
    /// Whether the address belongs to this machine.
    bool is_local;
    /// The number of bytes of `source`: 0, 4 or 16.
    uint8_t source_count;
    /// The local address that the kernel would use.
    uint8_t source[16];
} curlew_route;

/// Asks the kernel for the route to an address of 4 or 16 bytes, with its routing rules and tables; no packet is sent.
///
/// `source` is the local address, of the same family; NULL for the kernel's choice. `index` is the index of the
/// interface of a link-local address; 0 otherwise. Returns 0 or errno; 0 also if the kernel has no route.
int curlew_route_find(const uint8_t *bytes, const uint8_t *source, int count, uint32_t index, curlew_route *route);

/// The properties of a file that are compared to detect a change.
typedef struct {
    uint64_t inode;
    int64_t size, seconds, nanoseconds;
} curlew_stamp;

/// Reads the stamp of a file; false when there is no such file.
bool curlew_file_stamp(const char *path, curlew_stamp *stamp);

int curlew_epoll_create(void);
int curlew_eventfd_create(void);
/// Adds, changes or removes (mask 0) a descriptor; its events carry `token`. Returns errno or 0.
int curlew_epoll_update(int epoll, int descriptor, bool known, uint32_t mask, uint64_t token);

typedef struct {
    uint64_t token;
    uint32_t mask;
} curlew_ready;

/// Waits (-1 for no limit) and fills `ready`. Returns the number of events; 0 also when a signal interrupted the wait.
int curlew_epoll_wait(int epoll, curlew_ready *ready, int capacity, int milliseconds);

/// Returns the offset of the first occurrence of a byte sequence, in time linear in `count` (memmem); -1 if not found.
ptrdiff_t curlew_find(const void *bytes, size_t count, const void *wanted, size_t wanted_count);
/// Returns the offset of the last occurrence of a byte (memrchr); -1 if not found.
ptrdiff_t curlew_find_last(const void *bytes, size_t count, uint8_t wanted);

#endif
