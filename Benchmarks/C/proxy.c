// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// An HTTP proxy for servers on 127.0.0.1. It does little work, so that the clients wait for it as briefly as possible.
//   GET http://127.0.0.1:PORT/…   forwards the request; all requests on a connection have the same port
//   CONNECT 127.0.0.1:PORT        opens a tunnel
// Each connection of a client has a connection to the server, and both end together. Forwarded requests have no body,
// and a client sends the next request only after the response.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 64 << 10, EVENTS = 512 };

// The socket to a client or to a server, and the bytes received from it. The bytes from `at` to `ready` are for the
// peer; those after `ready` belong to an incomplete head.
typedef struct end {
    struct end *peer;
    int fd, is_forwarding;
    unsigned short port;
    size_t at, ready, filled;
    char bytes[PIECE + 1];
} end;

static int epoll_fd;
// Closed ends; other events of the same wake-up may still refer to them.
static end *closed[2 * EVENTS];
static int closed_count;

static struct sockaddr_in loopback(unsigned short port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

// The events are edge-triggered, so the proxy does not have to change them when a peer accepts no more bytes.
static end *make_end(int fd, int is_forwarding) {
    int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    end *e = malloc(sizeof *e);
    memset(e, 0, offsetof(end, bytes));
    e->fd = fd;
    e->is_forwarding = is_forwarding;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = e};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    return e;
}

static void drop(end *e) {
    if (!e) return;
    close(e->fd);
    e->fd = -1;
    closed[closed_count++] = e;
}

// The call blocks, because the kernel accepts or refuses a connection to this machine at once.
static int open_server(end *client, unsigned short port) {
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return 0;
    }
    client->port = port;
    client->peer = make_end(fd, 0);
    client->peer->peer = client;
    return 1;
}

// Answers CONNECT, or removes the scheme and the authority from the target of a request to forward. Returns 0 for a
// request that the proxy does not support.
static int take_head(end *client) {
    static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    unsigned short port = 0;
    int length = 0;
    client->bytes[client->filled] = 0;
    char *rest = strstr(client->bytes, "\r\n\r\n");
    if (!rest) return client->filled < PIECE;
    if (rest + 4 != client->bytes + client->filled) return 0;
    if (sscanf(client->bytes, "CONNECT 127.0.0.1:%hu", &port) == 1) {
        client->is_forwarding = 0;
        client->filled = 0;
        if (client->peer || !open_server(client, port)) return 0;
        return send(client->fd, established, sizeof established - 1, MSG_NOSIGNAL) == sizeof established - 1;
    }
    if (sscanf(client->bytes, "GET http://127.0.0.1:%hu%n", &port, &length) != 1) return 0;
    client->at = (size_t)length - 4;
    client->ready = client->filled;
    memcpy(client->bytes + client->at, "GET ", 4);
    return client->peer ? client->port == port : open_server(client, port);
}

// Moves bytes to the peer until there are no more, or the peer accepts no more. Returns 0 if the connection has ended.
static int move(end *from) {
    for (;;) {
        while (from->at < from->ready) {
            ssize_t count = send(from->peer->fd, from->bytes + from->at, from->ready - from->at,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
            if (count < 0) return errno == EAGAIN;
            from->at += (size_t)count;
        }
        if (from->at == from->filled) from->at = from->ready = from->filled = 0;
        ssize_t count = recv(from->fd, from->bytes + from->filled, PIECE - from->filled, MSG_DONTWAIT);
        if (count < 0) return errno == EAGAIN;
        if (count == 0) return 0;
        from->filled += (size_t)count;
        if (!from->is_forwarding) {
            from->ready = from->filled;
        } else if (!take_head(from)) {
            return 0;
        }
    }
}

static void act(end *e) {
    if (e->fd < 0) return;
    if (move(e) && (!e->peer || e->peer->at == e->peer->ready || move(e->peer))) return;
    drop(e->peer);
    drop(e);
}

static void accept_all(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) make_end(fd, 1);
}

int main(int argc, char **argv) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in address = loopback(argc > 1 ? (unsigned short)atoi(argv[1]) : 0);
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
        int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) {
                act(events[i].data.ptr);
            } else {
                accept_all(listener);
            }
        }
        while (closed_count > 0) free(closed[--closed_count]);
    }
}
