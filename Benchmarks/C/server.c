// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// A server for cases that nginx does not support: delayed responses, and request bodies that are discarded at full
// speed or slowly.
//   GET /delay/MS   responds with 1 KiB after MS milliseconds
//   PUT /sink       reads the body and responds with its length
//   PUT /slow/MS    like /sink, but reads 64 KiB each MS milliseconds

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 16 << 10, EVENTS = 512, PIECE = 64 << 10 };

typedef struct connection {
    struct connection *before, *after;
    uint64_t due;
    int fd, is_in_body, pace, is_chunked, in_line;
    size_t filled;
    long long left, taken, chunk;
    char head[];
} connection;

static int epoll_fd;
// Connections that wait for a deadline, the earliest first. Most have the same delay, so new ones are added at the end.
static connection line = {.before = &line, .after = &line};

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void unwait(connection *c) {
    if (!c->after) return;
    c->before->after = c->after;
    c->after->before = c->before;
    c->before = c->after = NULL;
}

static void wait_ms(connection *c, int ms) {
    unwait(c);
    c->due = now_ms() + (uint64_t)ms;
    connection *place = line.before;
    while (place != &line && place->due > c->due) place = place->before;
    c->before = place;
    c->after = place->after;
    place->after->before = c;
    place->after = c;
}

static void watch(connection *c, uint32_t mask) {
    struct epoll_event event = {.events = mask, .data.ptr = c};
    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void drop(connection *c) {
    unwait(c);
    close(c->fd);
    free(c);
}

static int answer(connection *c, const char *body, size_t length) {
    char text[2048];
    int head = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Length: %zu\r\n\r\n", length);
    memcpy(text + head, body, length);
    size_t size = (size_t)head + length;
    return send(c->fd, text, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static int finish_body(connection *c) {
    char text[32];
    int length = snprintf(text, sizeof text, "%lld", c->taken);
    c->is_in_body = 0;
    return answer(c, text, (size_t)length);
}

static int digit(char byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 32;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

// Counts the bytes of chunks; returns 1 after the last chunk, which is empty. Does not support extensions or trailers.
static int count_chunks(connection *c, const char *bytes, size_t count) {
    for (size_t i = 0; i < count;) {
        if (c->left > 0) {
            long long part = (long long)(count - i) < c->left ? (long long)(count - i) : c->left;
            c->left -= part;
            c->taken += part;
            i += (size_t)part;
            continue;
        }
        char byte = bytes[i++];
        if (digit(byte) >= 0) {
            c->chunk = c->chunk * 16 + digit(byte);
            c->in_line = 1;
        } else if (byte == '\n' && c->in_line) {
            if (c->chunk == 0) return 1;
            c->left = c->chunk;
            c->chunk = 0;
            c->in_line = 0;
        }
    }
    return 0;
}

// Waits for more bytes, immediately or at the pace of a slow server.
static int wait_for_more(connection *c, int is_empty) {
    watch(c, is_empty || !c->pace ? EPOLLIN : 0);
    if (c->pace && !is_empty) wait_ms(c, c->pace);
    return 1;
}

static int take_chunks(connection *c) {
    static char bytes[256 << 10];
    for (;;) {
        ssize_t count = recv(c->fd, bytes, c->pace ? PIECE : sizeof bytes, 0);
        if (count < 0 && errno == EAGAIN) return wait_for_more(c, 1);
        if (count <= 0) return 0;
        if (count_chunks(c, bytes, (size_t)count)) return finish_body(c);
        if (c->pace) return wait_for_more(c, 0);
    }
}

// Discards the body's bytes inside the kernel. Returns 0 if the connection has ended.
static int take_body(connection *c) {
    if (c->is_chunked) return take_chunks(c);
    while (c->left > 0) {
        size_t wanted = c->pace ? PIECE : 4 << 20;
        if ((long long)wanted > c->left) wanted = (size_t)c->left;
        ssize_t count = recv(c->fd, NULL, wanted, MSG_TRUNC);
        if (count < 0 && errno == EAGAIN) return wait_for_more(c, 1);
        if (count <= 0) return 0;
        c->left -= count;
        c->taken += count;
        if (c->pace && c->left) return wait_for_more(c, 0);
    }
    return finish_body(c);
}

static int begin(connection *c) {
    char *end = strstr(c->head, "\r\n\r\n"), *field = strcasestr(c->head, "\r\ncontent-length:");
    int ms = 0;
    size_t rest = c->filled - (size_t)(end + 4 - c->head);
    if (sscanf(c->head, "GET /delay/%d", &ms) == 1) {
        c->filled = 0;
        wait_ms(c, ms);
        return 1;
    }
    c->pace = sscanf(c->head, "PUT /slow/%d", &ms) == 1 ? ms : 0;
    c->is_chunked = strcasestr(c->head, "\r\ntransfer-encoding: chunked") != NULL;
    if (strncmp(c->head, "PUT /s", 6) || !(field || c->is_chunked)) return 0;
    c->left = c->is_chunked ? 0 : atoll(field + 17) - (long long)rest;
    c->taken = c->is_chunked ? 0 : (long long)rest;
    c->chunk = c->in_line = 0;
    c->is_in_body = 1;
    c->filled = 0;
    if (strcasestr(c->head, "\r\nexpect: 100") && send(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL) < 0)
        return 0;
    return c->is_chunked && count_chunks(c, end + 4, rest) ? finish_body(c) : take_body(c);
}

static int readable(connection *c) {
    if (c->is_in_body) return take_body(c);
    ssize_t count = recv(c->fd, c->head + c->filled, HEAD - 1 - c->filled, 0);
    if (count < 0 && errno == EAGAIN) return 1;
    if (count <= 0) return 0;
    c->filled += (size_t)count;
    c->head[c->filled] = 0;
    return strstr(c->head, "\r\n\r\n") ? begin(c) : c->filled < HEAD - 1;
}

static void serve_due(void) {
    static char body[1024];
    uint64_t now = now_ms();
    while (line.after != &line && line.after->due <= now) {
        connection *c = line.after;
        unwait(c);
        if (c->is_in_body ? !take_body(c) : !answer(c, body, sizeof body)) drop(c);
    }
}

static void accept_all(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        connection *c = calloc(1, sizeof *c + HEAD);
        c->fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

static int patience(void) {
    if (line.after == &line) return -1;
    uint64_t now = now_ms();
    return line.after->due <= now ? 0 : (int)(line.after->due - now);
}

int main(int argc, char **argv) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? (uint16_t)atoi(argv[1]) : 0)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 16384)) {
        perror("listen");
        return 1;
    }
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, patience());
        for (int i = 0; i < count; i++) {
            connection *c = events[i].data.ptr;
            if (!c) {
                accept_all(listener);
            } else if (!readable(c)) {
                drop(c);
            }
        }
        serve_due();
    }
}
