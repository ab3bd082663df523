// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_engine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void curlew_tcp_set(int descriptor, const curlew_tcp_options *options) {
    const int on = 1;
    if (options->keep_idle > 0 || options->keep_interval > 0 || options->keep_count > 0) {
        setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &options->keep_idle, sizeof(int));
        setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &options->keep_interval, sizeof(int));
        setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &options->keep_count, sizeof(int));
    }
    if (options->user_timeout > 0) {
        setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &options->user_timeout, sizeof(unsigned));
    }
    if (options->fast_open) setsockopt(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &on, sizeof on);
}

bool curlew_tcp_read(int descriptor, curlew_tcp_options *options) {
    int keeps_alive = 0, fast_open = 0;
    socklen_t size = sizeof(int);
    memset(options, 0, sizeof *options);
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &options->user_timeout, &size) != 0) return false;
    getsockopt(descriptor, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &fast_open, &size);
    options->fast_open = fast_open != 0;
    getsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &keeps_alive, &size);
    if (keeps_alive) {
        getsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &options->keep_idle, &size);
        getsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &options->keep_interval, &size);
        getsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &options->keep_count, &size);
    }
    return true;
}

int curlew_bind_interface(int descriptor, const char *name) {
    return setsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, name, (socklen_t)strlen(name)) == 0 ? 0 : errno;
}

typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} ip_address;

static socklen_t make_address(ip_address *address, const uint8_t *bytes, int count, uint16_t port) {
    memset(address, 0, sizeof *address);
    if (count == 4) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        memcpy(&address->v4.sin_addr, bytes, 4);
        return sizeof address->v4;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(port);
    memcpy(&address->v6.sin6_addr, bytes, 16);
    return sizeof address->v6;
}

int curlew_bind_address(int descriptor, const uint8_t *bytes, int count) {
    // The port is chosen when the socket connects, so that connections to different servers can have the same one.
    const int on = 1;
    setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    ip_address address;
    socklen_t length = make_address(&address, bytes, count, 0);
    return bind(descriptor, &address.any, length) == 0 ? 0 : errno;
}

int curlew_stream_socket(int count) {
    const int on = 1;
    int descriptor = socket(count == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // libcurl sets this option for its own sockets.
    if (descriptor >= 0) setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return descriptor;
}

int curlew_connect(int descriptor, const uint8_t *bytes, int count, uint16_t port) {
    ip_address address;
    socklen_t length = make_address(&address, bytes, count, port);
    return connect(descriptor, &address.any, length) == 0 || errno == EINPROGRESS ? 0 : errno;
}

int curlew_socket_error(int descriptor) {
    int failure = 0;
    socklen_t size = sizeof failure;
    return getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &failure, &size) == 0 ? failure : errno;
}

void curlew_set_traffic_class(int descriptor, int value) {
    setsockopt(descriptor, IPPROTO_IP, IP_TOS, &value, sizeof value);
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof value);
}

// libcurl passes a sockaddr with the length of its family, regardless of the declared type.
static int address_place(const struct sockaddr *address, uint8_t **place, in_port_t **port) {
    if (address->sa_family == AF_INET) {
        *place = (uint8_t *)&((struct sockaddr_in *)address)->sin_addr;
        *port = &((struct sockaddr_in *)address)->sin_port;
        return 4;
    }
    if (address->sa_family != AF_INET6) return 0;
    *place = (uint8_t *)&((struct sockaddr_in6 *)address)->sin6_addr;
    *port = &((struct sockaddr_in6 *)address)->sin6_port;
    return 16;
}

int curlew_address_bytes(const struct curl_sockaddr *address, uint8_t bytes[16]) {
    uint8_t *place;
    in_port_t *port;
    int count = address_place(&address->addr, &place, &port);
    if (count > 0) memcpy(bytes, place, (size_t)count);
    return count;
}

uint16_t curlew_address_port(const struct curl_sockaddr *address) {
    uint8_t *place;
    in_port_t *port;
    return address_place(&address->addr, &place, &port) > 0 ? ntohs(*port) : 0;
}

void curlew_address_replace(struct curl_sockaddr *address, const uint8_t *bytes, uint16_t port) {
    uint8_t *place;
    in_port_t *own;
    int count = address_place(&address->addr, &place, &own);
    if (count > 0) memcpy(place, bytes, (size_t)count);
    if (count > 0 && port) *own = htons(port);
}

int curlew_address_parse(const char *text, uint8_t bytes[16]) {
    if (inet_pton(AF_INET, text, bytes) == 1) return 4;
    return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}
