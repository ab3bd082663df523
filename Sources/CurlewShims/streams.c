// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Detection of complete HTTP/2 responses.
//
// Only END_STREAM ends a response (RFC 9113 section 8.1), and nothing else marks the end of a body without
// Content-Length. libcurl can report success without END_STREAM: every version does when RST_STREAM(NO_ERROR) closes
// the stream, and 7.88 also when the connection ends or breaks the protocol inside the body. nghttp2 passes every frame
// to libcurl; libcurl does not pass frames to its callers.
//
// This file defines functions of nghttp2. The dynamic linker searches the program before libraries, so libcurl calls
// the functions of this file, and they call nghttp2's functions. On a thread with a watcher they report the pointer
// that libcurl gives nghttp2 for a new stream, and wrap libcurl's callback for frames to report HEADERS and END_STREAM.
// For all other callers in the process they only forward the call.
//
// Curlew works without this file. libcurl does not call these functions when it contains nghttp2, or when the process
// loaded libcurl before a library that contains Curlew; the engine then relies on the state of its sockets. In a static
// link with nghttp2, nghttp2's functions override the weak symbols.
#define _GNU_SOURCE
#include "curlew_engine.h"

#include <dlfcn.h>
#include <pthread.h>

// MARK: Declarations of nghttp2.h since nghttp2 1.0, so that the header is not needed to build

typedef struct nghttp2_session nghttp2_session;
typedef struct nghttp2_session_callbacks nghttp2_session_callbacks;

/// nghttp2_frame_hd, the beginning of each nghttp2_frame.
typedef struct {
    size_t length;
    int32_t stream_id;
    uint8_t type;
    uint8_t flags;
    uint8_t reserved;
} frame_header;

_Static_assert(offsetof(frame_header, stream_id) == sizeof(size_t), "nghttp2_frame_hd is laid out as in nghttp2.h");
_Static_assert(offsetof(frame_header, flags) == sizeof(size_t) + 5, "nghttp2_frame_hd is laid out as in nghttp2.h");

enum { data_frame = 0, headers_frame = 1, ping_frame = 6, end_stream = 1, acknowledged = 1, invalid_argument = -501 };

typedef int (*frame_callback)(nghttp2_session *session, const frame_header *frame, void *user);
typedef void (*set_frame_callback)(nghttp2_session_callbacks *callbacks, frame_callback callback);
typedef int32_t (*submit_request)(nghttp2_session *session, const void *priority, const void *fields, size_t count,
                                  const void *body, void *user);
typedef void *(*get_user)(nghttp2_session *session, int32_t stream);
typedef int (*submit_ping)(nghttp2_session *session, uint8_t flags, const uint8_t *data);

void nghttp2_session_callbacks_set_on_frame_recv_callback(nghttp2_session_callbacks *callbacks,
                                                          frame_callback callback);
int32_t nghttp2_submit_request(nghttp2_session *session, const void *priority, const void *fields, size_t count,
                               const void *body, void *user);
// Newer versions of nghttp2 have this function for another type of body.
int32_t nghttp2_submit_request2(nghttp2_session *session, const void *priority, const void *fields, size_t count,
                                const void *body, void *user);

// MARK: The original functions

typedef struct {
    set_frame_callback set_callback;
    submit_request submit;
    /// NULL in older versions, whose callers do not use it.
    submit_request submit2;
    get_user user;
    submit_ping ping;
} functions;

static functions in(void *library) {
    return (functions){
        .set_callback = (set_frame_callback)dlsym(library, "nghttp2_session_callbacks_set_on_frame_recv_callback"),
        .submit = (submit_request)dlsym(library, "nghttp2_submit_request"),
        .submit2 = (submit_request)dlsym(library, "nghttp2_submit_request2"),
        .user = (get_user)dlsym(library, "nghttp2_session_get_stream_user_data"),
        .ping = (submit_ping)dlsym(library, "nghttp2_submit_ping"),
    };
}

static functions following;
static void find_following(void) { following = in(RTLD_NEXT); }

// Returns the next functions in the search order of the process, otherwise those of the caller's own libraries.
static functions original_functions(void *caller) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_following);
    functions found = following;
    Dl_info place;
    if (found.submit || !dladdr(caller, &place)) return found;
    void *library = dlopen(place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return found;
    functions own = in(library);
    dlclose(library);
    return own.submit == nghttp2_submit_request ? found : own;
}

// MARK: The watcher of a thread

static _Thread_local struct {
    curlew_stream_callbacks calls;
    void *context;
    get_user user;
    submit_ping ping;
    /// libcurl's callbacks: one for servers, and since 8.1 a second one for proxies.
    frame_callback originals[2];
} watcher;

void curlew_watch_streams(const curlew_stream_callbacks *calls, void *context) {
    watcher.calls = calls ? *calls : (curlew_stream_callbacks){0};
    watcher.context = context;
}

bool curlew_ping(void *session) { return watcher.ping && watcher.ping(session, 0, NULL) == 0; }

static void look_at(nghttp2_session *session, const frame_header *frame) {
    if (frame->type == ping_frame && frame->flags & acknowledged && watcher.calls.answered)
        watcher.calls.answered(watcher.context, session);
    bool is_last = frame->type <= headers_frame && frame->flags & end_stream;
    if (!watcher.calls.received || (!is_last && frame->type != headers_frame)) return;
    void *user = watcher.user(session, frame->stream_id);
    if (user) watcher.calls.received(watcher.context, user, is_last);
}

static int first(nghttp2_session *session, const frame_header *frame, void *user) {
    look_at(session, frame);
    return watcher.originals[0](session, frame, user);
}

static int second(nghttp2_session *session, const frame_header *frame, void *user) {
    look_at(session, frame);
    return watcher.originals[1](session, frame, user);
}

// Whether an address belongs to the library of curl_easy_strerror, libcurl.
static bool is_in_libcurl(void *address) {
    Dl_info place, libcurl;
    return dladdr(address, &place) && dladdr(curl_easy_strerror(CURLE_OK), &libcurl) &&
        place.dli_fbase == libcurl.dli_fbase;
}

// MARK: Functions that libcurl calls instead of nghttp2's

__attribute__((weak, visibility("default")))
void nghttp2_session_callbacks_set_on_frame_recv_callback(nghttp2_session_callbacks *callbacks,
                                                          frame_callback callback) {
    static const frame_callback ours[] = {first, second};
    void *caller = __builtin_return_address(0);
    functions nghttp2 = original_functions(caller);
    if (!nghttp2.set_callback) return;
    // An HTTP/2 session stays on one thread, because Curlew uses each multi handle on one thread.
    bool is_watched = callback && watcher.calls.received && nghttp2.user && is_in_libcurl(caller);
    watcher.user = is_watched ? nghttp2.user : watcher.user;
    watcher.ping = is_watched ? nghttp2.ping : watcher.ping;
    for (int slot = 0; is_watched && slot < 2; slot++) {
        if (watcher.originals[slot] && watcher.originals[slot] != callback) continue;
        watcher.originals[slot] = callback;
        nghttp2.set_callback(callbacks, ours[slot]);
        return;
    }
    nghttp2.set_callback(callbacks, callback);
}

static int32_t submit_to(submit_request submit, nghttp2_session *session, const void *priority, const void *fields,
                         size_t count, const void *body, void *user) {
    if (!submit) return invalid_argument;
    if (watcher.calls.submitted && user) watcher.calls.submitted(watcher.context, session, user);
    return submit(session, priority, fields, count, body, user);
}

__attribute__((weak, visibility("default")))
int32_t nghttp2_submit_request(nghttp2_session *session, const void *priority, const void *fields, size_t count,
                               const void *body, void *user) {
    submit_request submit = original_functions(__builtin_return_address(0)).submit;
    return submit_to(submit, session, priority, fields, count, body, user);
}

__attribute__((weak, visibility("default")))
int32_t nghttp2_submit_request2(nghttp2_session *session, const void *priority, const void *fields, size_t count,
                                const void *body, void *user) {
    submit_request submit = original_functions(__builtin_return_address(0)).submit2;
    return submit_to(submit, session, priority, fields, count, body, user);
}
