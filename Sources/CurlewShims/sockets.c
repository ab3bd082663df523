// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_engine.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

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

// libcurl passes a sockaddr with the length of its family, regardless of the declared type.
static int address_place(const struct sockaddr *address, uint8_t **place) {
    if (address->sa_family == AF_INET) {
        *place = (uint8_t *)&((struct sockaddr_in *)address)->sin_addr;
        return 4;
    }
    if (address->sa_family != AF_INET6) return 0;
    *place = (uint8_t *)&((struct sockaddr_in6 *)address)->sin6_addr;
    return 16;
}

int curlew_address_bytes(const struct curl_sockaddr *address, uint8_t bytes[16]) {
    uint8_t *place;
    int count = address_place(&address->addr, &place);
    if (count > 0) memcpy(bytes, place, (size_t)count);
    return count;
}

void curlew_address_replace(struct curl_sockaddr *address, const uint8_t *bytes) {
    uint8_t *place;
    int count = address_place(&address->addr, &place);
    if (count > 0) memcpy(place, bytes, (size_t)count);
}

int curlew_address_parse(const char *text, uint8_t bytes[16]) {
    if (inet_pton(AF_INET, text, bytes) == 1) return 4;
    return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}
