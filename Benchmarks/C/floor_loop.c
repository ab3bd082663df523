// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "floor.h"

#include <openssl/ssl.h>

enum { DESCRIPTORS = 1 << 16, EVENTS = 256, PIECE = 64 << 10 };

static job *work;
static int epoll_fd;
static uint64_t deadline = UINT64_MAX, opened;
static slot *waiting;

// What epoll watches and what libcurl wants. libcurl asks to stop watching at the end of each request and to watch again
// at the start of the next; a descriptor stays registered until it is closed or has an event that nobody wants.
static struct {
    uint32_t registered, wanted;
} table[DESCRIPTORS];

static void update(int fd, uint32_t mask) {
    struct epoll_event event = {.events = mask, .data.fd = fd};
    int operation = !mask ? EPOLL_CTL_DEL : table[fd].registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    epoll_ctl(epoll_fd, operation, fd, &event);
    table[fd].registered = mask;
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *unused) {
    (void)easy, (void)context, (void)unused;
    if (fd >= DESCRIPTORS) die("too many descriptors");
    uint32_t mask = 0;
    if (what != CURL_POLL_REMOVE) {
        if (what & CURL_POLL_IN) mask |= EPOLLIN;
        if (what & CURL_POLL_OUT) mask |= EPOLLOUT;
    }
    table[fd].wanted = mask;
    if (mask ? mask != table[fd].registered : !work->lazy && table[fd].registered) update(fd, mask);
    return 0;
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi, (void)context;
    deadline = milliseconds < 0 ? UINT64_MAX : milliseconds == 0 ? 0 : now_ns() + (uint64_t)milliseconds * 1000000;
    return 0;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)context, (void)purpose;
    opened++;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static int close_socket(void *context, curl_socket_t fd) {
    (void)context;
    memset(&table[fd], 0, sizeof table[fd]);
    return close(fd);
}

void sockets_install(CURL *easy) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
}

uint64_t sockets_opened(void) { return opened; }

void loop_open(job *given) {
    work = given;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    curl_multi_setopt(work->multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(work->multi, CURLMOPT_TIMERFUNCTION, set_timer);
}

static int patience(void) {
    uint64_t until = waiting && waiting->resume_at < deadline ? waiting->resume_at : deadline;
    if (until == UINT64_MAX) return 60000;
    if (until == 0) return 0;
    uint64_t now = now_ns();
    return until <= now ? 0 : (int)((until - now + 999999) / 1000000);
}

void loop_turn(void) {
    struct epoll_event events[EVENTS];
    int running, count = epoll_wait(epoll_fd, events, EVENTS, patience());
    for (int i = 0; i < count; i++) {
        int fd = events[i].data.fd;
        if (!table[fd].wanted) {
            if (table[fd].registered) update(fd, 0);
            continue;
        }
        int what = 0;
        if (events[i].events & (EPOLLIN | EPOLLHUP)) what |= CURL_CSELECT_IN;
        if (events[i].events & EPOLLOUT) what |= CURL_CSELECT_OUT;
        if (events[i].events & EPOLLERR) what |= CURL_CSELECT_ERR;
        curl_multi_socket_action(work->multi, fd, what, &running);
    }
    if (waiting && waiting->resume_at <= now_ns()) {
        slot *s = waiting;
        waiting = NULL;
        s->budget = PIECE;
        curl_easy_pause(s->easy, CURLPAUSE_CONT);
    }
    if (deadline != UINT64_MAX && (deadline == 0 || deadline <= now_ns())) {
        deadline = UINT64_MAX;
        curl_multi_socket_action(work->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

int pace_allows(slot *s, size_t length) {
    if (s->budget >= length || s->got == 0) {
        s->budget = s->got == 0 ? PIECE - length : s->budget - length;
        return 1;
    }
    s->resume_at = now_ns() + (uint64_t)work->pace_ms * 1000000;
    waiting = s;
    return 0;
}

static CURLcode use_store(CURL *easy, void *context, void *store) {
    (void)easy;
    SSL_CTX_set1_cert_store(context, store);
    return CURLE_OK;
}

void share_store(CURL *easy, const char *ca) {
    static X509_STORE *store;
    if (!store) {
        store = X509_STORE_new();
        if (!X509_STORE_load_locations(store, ca, NULL)) die("%s has no certificate", ca);
    }
    curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, use_store);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, store);
}
