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

typedef struct {
    CURLM *multi;
    uint64_t deadline;
} shard;

static job *work;
static int epoll_fd;
static shard *shards;
static uint64_t opened;
static slot *waiting;

// The events that epoll watches and that libcurl wants. libcurl stops watching a descriptor at the end of each request
// and starts again with the next one; a descriptor stays registered until it is closed or has an unwanted event.
static struct {
    uint32_t registered, wanted;
    int shard;
    // The number of consecutive times that it was writable without any bytes to send, and the end of the pause.
    int vain;
    uint64_t muted_until;
} table[DESCRIPTORS];
static int muted = -1;
static uint64_t progress;

static void update(int fd, uint32_t mask) {
    struct epoll_event event = {.events = mask, .data.fd = fd};
    int operation = !mask ? EPOLL_CTL_DEL : table[fd].registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    epoll_ctl(epoll_fd, operation, fd, &event);
    table[fd].registered = mask;
}

static int watch(CURL *easy, curl_socket_t fd, int what, void *context, void *unused) {
    (void)easy, (void)unused;
    if (fd >= DESCRIPTORS) die("too many descriptors");
    uint32_t mask = 0;
    if (what != CURL_POLL_REMOVE) {
        if (what & CURL_POLL_IN) mask |= EPOLLIN;
        if (what & CURL_POLL_OUT) mask |= EPOLLOUT;
    }
    table[fd].wanted = mask;
    table[fd].shard = (int)((shard *)context - shards);
    if (table[fd].muted_until) mask &= ~(uint32_t)EPOLLOUT;
    if (mask ? mask != table[fd].registered : !work->lazy && table[fd].registered) update(fd, mask);
    return 0;
}

static int set_timer(CURLM *multi, long milliseconds, void *context) {
    (void)multi;
    ((shard *)context)->deadline =
        milliseconds < 0 ? UINT64_MAX : milliseconds == 0 ? 0 : now_ns() + (uint64_t)milliseconds * 1000000;
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
    shards = calloc((size_t)work->shards, sizeof *shards);
    for (shard *one = shards; one < shards + work->shards; one++) {
        one->deadline = UINT64_MAX;
        one->multi = curl_multi_init();
        curl_multi_setopt(one->multi, CURLMOPT_MAXCONNECTS, (long)(work->c / work->shards) + 16);
        curl_multi_setopt(one->multi, CURLMOPT_SOCKETFUNCTION, watch);
        curl_multi_setopt(one->multi, CURLMOPT_SOCKETDATA, one);
        curl_multi_setopt(one->multi, CURLMOPT_TIMERFUNCTION, set_timer);
        curl_multi_setopt(one->multi, CURLMOPT_TIMERDATA, one);
    }
}

CURLM *loop_multi(int number) { return shards[number % work->shards].multi; }

void loop_progress(void) { progress++; }

static int patience(void) {
    uint64_t until = waiting ? waiting->resume_at : UINT64_MAX;
    if (muted >= 0 && table[muted].muted_until < until) until = table[muted].muted_until;
    for (int i = 0; i < work->shards; i++)
        if (shards[i].deadline < until) until = shards[i].deadline;
    if (until == UINT64_MAX) return 60000;
    if (until == 0) return 0;
    uint64_t now = now_ns();
    return until <= now ? 0 : (int)((until - now + 999999) / 1000000);
}

// libcurl 7.88 waits for a writable socket while an HTTP/2 window is closed. After many useless events the loop ignores
// them for a while; the server's next bytes end the pause. One paused connection at a time is enough here.
static void mute(int fd, int what, uint64_t before) {
    if (progress != before || what & CURL_CSELECT_IN || !(what & CURL_CSELECT_OUT)) {
        table[fd].vain = 0;
        if (!table[fd].muted_until) return;
        table[fd].muted_until = 0;
        if (table[fd].wanted) update(fd, table[fd].wanted);
    } else if (++table[fd].vain >= 64 && table[fd].registered & EPOLLOUT && work->upload >= 0) {
        table[fd].muted_until = now_ns() + 20000000;
        muted = fd;
        update(fd, table[fd].wanted & ~(uint32_t)EPOLLOUT);
    }
}

static void act(const struct epoll_event *event) {
    int fd = event->data.fd, what = 0, running;
    if (!table[fd].wanted) {
        if (table[fd].registered) update(fd, 0);
        return;
    }
    if (event->events & (EPOLLIN | EPOLLHUP)) what |= CURL_CSELECT_IN;
    if (event->events & EPOLLOUT) what |= CURL_CSELECT_OUT;
    if (event->events & EPOLLERR) what |= CURL_CSELECT_ERR;
    uint64_t before = progress;
    curl_multi_socket_action(shards[table[fd].shard].multi, fd, what, &running);
    if (work->upload >= 0) mute(fd, what, before);
}

void loop_turn(void) {
    struct epoll_event events[EVENTS];
    int running, count = epoll_wait(epoll_fd, events, EVENTS, patience());
    for (int i = 0; i < count; i++) act(&events[i]);
    if (muted >= 0 && table[muted].muted_until && table[muted].muted_until <= now_ns()) {
        table[muted].muted_until = 0;
        table[muted].vain = 0;
        if (table[muted].wanted) update(muted, table[muted].wanted);
    }
    if (muted >= 0 && !table[muted].muted_until) muted = -1;
    if (waiting && waiting->resume_at <= now_ns()) {
        slot *s = waiting;
        waiting = NULL;
        s->budget = PIECE;
        curl_easy_pause(s->easy, CURLPAUSE_CONT);
    }
    for (shard *one = shards; one < shards + work->shards; one++) {
        if (one->deadline == UINT64_MAX || (one->deadline > 0 && one->deadline > now_ns())) continue;
        one->deadline = UINT64_MAX;
        curl_multi_socket_action(one->multi, CURL_SOCKET_TIMEOUT, 0, &running);
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
