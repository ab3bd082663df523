// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_engine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void curlew_set_callbacks(CURL *easy, void *context, curlew_data_callback write, curlew_data_callback header,
                          curlew_data_callback read, curlew_seek_callback seek, curlew_open_callback open,
                          curlew_close_callback close, curlew_context_callback tls) {
    curl_easy_setopt(easy, CURLOPT_PRIVATE, context);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
    curl_easy_setopt(easy, CURLOPT_READDATA, context);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, tls);
    curl_easy_setopt(easy, CURLOPT_SSL_CTX_DATA, context);
}

void curlew_set_prerequest(CURL *easy, curlew_prerequest_callback prerequest, void *context) {
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, prerequest);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
}

void curlew_multi_set_callbacks(CURLM *multi, void *context, curlew_socket_callback socket,
                                curlew_timer_callback timer) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

void curlew_thread_name(const char *name) { pthread_setname_np(pthread_self(), name); }

int curlew_thread_start(void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    int failure = pthread_attr_init(&attributes);
    if (failure) return failure;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    failure = pthread_create(&thread, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return failure;
}

static _Atomic uint64_t fork_generation = 0;

static void count_fork(void) { atomic_fetch_add(&fork_generation, 1); }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

uint64_t curlew_fork_generation(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return atomic_load_explicit(&fork_generation, memory_order_relaxed);
}

uint64_t curlew_next_id(void) {
    static _Atomic uint64_t last = 0;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

int curlew_run_in_fork(int (*body)(void *), void *argument) {
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) _exit(body(argument));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Asks the kernel (sock_diag(7)) which inode is the other end of a Unix socket; 0 when it does not say.
static uint32_t peer_inode(uint32_t inode) {
    struct {
        struct nlmsghdr head;
        struct unix_diag_req body;
    } question = {
        .head = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .body = {.sdiag_family = AF_UNIX, .udiag_states = ~0u, .udiag_ino = inode, .udiag_show = UDIAG_SHOW_PEER,
                 .udiag_cookie = {~0u, ~0u}},
    };
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    int diagnosis = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (diagnosis < 0) return 0;
    // The kernel has answered when send returns.
    ssize_t count = send(diagnosis, &question, sizeof question, 0) < 0
        ? -1 : recv(diagnosis, &answer, sizeof answer, MSG_DONTWAIT);
    close(diagnosis);
    if (count < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || !NLMSG_OK(&answer.head, count) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return 0;
    int length = (int)(answer.head.nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg)));
    struct rtattr *attribute = (struct rtattr *)((struct unix_diag_msg *)NLMSG_DATA(&answer.head) + 1);
    for (; RTA_OK(attribute, length); attribute = RTA_NEXT(attribute, length)) {
        if (attribute->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(attribute) == sizeof(uint32_t))
            return *(uint32_t *)RTA_DATA(attribute);
    }
    return 0;
}

static bool is_socket(int descriptor, uint32_t *inode) {
    struct stat facts;
    if (descriptor < 0 || fstat(descriptor, &facts) < 0 || !S_ISSOCK(facts.st_mode)) return false;
    *inode = (uint32_t)facts.st_ino;
    return true;
}

// Looks from near to far, since both ends got the lowest free numbers of one moment. A kernel without sock_diag leaves
// a guess: both ends have neighbouring inode numbers, as a rule.
void curlew_close_pair_on_exec(int descriptor) {
    uint32_t own, other;
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 || !is_socket(descriptor, &own)) return;
    uint32_t peer = peer_inode(own);
    for (int distance = 1; distance <= (peer ? 8192 : 64); distance++) {
        for (int side = -1; side <= 1; side += 2) {
            int candidate = descriptor + side * distance;
            if (!is_socket(candidate, &other)) continue;
            if (peer ? other != peer : other != own + 1 && own != other + 1) continue;
            fcntl(candidate, F_SETFD, FD_CLOEXEC);
            return;
        }
    }
}

static bool is_silent_unix_socket(int descriptor) {
    int domain = 0, waiting = 0;
    socklen_t size = sizeof domain;
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) return false;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain != AF_UNIX) return false;
    return ioctl(descriptor, FIONREAD, &waiting) == 0 && waiting == 0;
}

// A wake-up makes exactly the reading end of the pair go from empty to readable, which no API would tell us.
void curlew_close_wakeup_on_exec(CURLM *multi) {
    enum { most = 1024 };
    int candidates[most], count = 0;
    DIR *all = opendir("/proc/self/fd");
    if (!all) return;
    for (struct dirent *entry; (entry = readdir(all)) && count < most;) {
        int descriptor = atoi(entry->d_name);
        if (descriptor > 2 && is_silent_unix_socket(descriptor)) candidates[count++] = descriptor;
    }
    closedir(all);
    if (count == 0 || curl_multi_wakeup(multi) != CURLM_OK) return;
    for (int i = 0; i < count; i++) {
        int waiting = 0;
        if (ioctl(candidates[i], FIONREAD, &waiting) == 0 && waiting > 0) curlew_close_pair_on_exec(candidates[i]);
    }
}

int curlew_netlink_open(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl address = {.nl_family = AF_NETLINK,
                                  .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
                                               RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
    if (descriptor >= 0 && bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    int failure = errno;
    if (descriptor >= 0) close(descriptor);
    errno = failure;
    return -1;
}

void curlew_netlink_drain(int descriptor) {
    char message[8192];
    // ENOBUFS says that the kernel dropped messages: there may be more, and the caller looks again anyway.
    while (recv(descriptor, message, sizeof message, 0) > 0 || errno == ENOBUFS || errno == EINTR) {}
}

int curlew_dead_socket(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) return -1;
    close(pair[1]);
    return pair[0];
}

bool curlew_has_ended(int descriptor) {
    char byte;
    ssize_t count = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

bool curlew_peer_has_ended(int descriptor) {
    struct pollfd entry = {.fd = descriptor, .events = POLLRDHUP};
    return poll(&entry, 1, 0) != 0;
}

int curlew_local_port(int descriptor) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, &address.any, &length) != 0) return -1;
    if (address.any.sa_family == AF_INET) return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) | 1 << 16 : -1;
}

bool curlew_replace(int descriptor, int other) { return dup3(other, descriptor, O_CLOEXEC) >= 0; }

_Static_assert(EPOLLIN == 0x001 && EPOLLOUT == 0x004 && EPOLLERR == 0x008 && EPOLLHUP == 0x010 && EPOLLRDHUP == 0x2000,
               "epoll's masks");
int curlew_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }
int curlew_eventfd_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int curlew_epoll_update(int epoll, int descriptor, bool known, uint32_t mask, uint64_t token) {
    struct epoll_event event = {.events = mask, .data.u64 = token};
    int operation = mask == 0 ? EPOLL_CTL_DEL : (known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD);
    if (epoll_ctl(epoll, operation, descriptor, &event) == 0) return 0;
    if (operation == EPOLL_CTL_MOD && errno == ENOENT && epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0)
        return 0;
    if (operation == EPOLL_CTL_ADD && errno == EEXIST && epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event) == 0)
        return 0;
    return errno;
}

int curlew_epoll_wait(int epoll, curlew_ready *ready, int capacity, int milliseconds) {
    struct epoll_event events[128];
    int count = epoll_wait(epoll, events, capacity < 128 ? capacity : 128, milliseconds);
    for (int i = 0; i < count; i++) ready[i] = (curlew_ready){.token = events[i].data.u64, .mask = events[i].events};
    return count < 0 ? 0 : count;
}

// MARK: TLS

typedef struct {
    void *judge;
    curlew_release_callback end;
    curlew_release_callback release;
} owned_judge;

static void free_judge(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long argl, void *argp) {
    (void)parent, (void)data, (void)index, (void)argl, (void)argp;
    owned_judge *owned = pointer;
    if (!owned) return;
    owned->release(owned->judge);
    free(owned);
}

static int judge_index = -1;
static void make_index(void) { judge_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_judge); }

// libcurl's close makes OpenSSL forget that the peer's close_notify was read, so it is told on when it is.
static void note_end(const SSL *ssl, int where, int alert) {
    if (where != SSL_CB_READ_ALERT || (alert & 0xFF) != SSL_AD_CLOSE_NOTIFY) return;
    owned_judge *owned = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), judge_index);
    if (owned) owned->end(owned->judge);
}

bool curlew_tls_install(void *context, X509_STORE *store, void *judge, curlew_verify_callback verify,
                        curlew_release_callback end, curlew_release_callback release) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_index);
    owned_judge *owned = malloc(sizeof *owned);
    if (!owned || judge_index < 0) {
        free(owned);
        release(judge);
        return false;
    }
    *owned = (owned_judge){.judge = judge, .end = end, .release = release};
    if (!SSL_CTX_set_ex_data(context, judge_index, owned)) {
        free(owned);
        release(judge);
        return false;
    }
    SSL_CTX_set1_cert_store(context, store);
    SSL_CTX_set_cert_verify_callback(context, verify, judge);
    SSL_CTX_set_info_callback(context, note_end);
    return true;
}

static SSL *connection_under(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session) return NULL;
    return session->internals;
}

void *curlew_tls_judge(CURL *easy) {
    SSL *ssl = connection_under(easy);
    owned_judge *owned = ssl ? SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), judge_index) : NULL;
    return owned ? owned->judge : NULL;
}

bool curlew_tls_read(CURL *easy, curlew_tls_facts *facts) {
    SSL *ssl = connection_under(easy);
    if (!ssl) return false;
    const unsigned char *protocol = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &length);
    facts->http2 = length == 2 && memcmp(protocol, "h2", 2) == 0;
    facts->version = SSL_get_version(ssl);
    facts->cipher = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl));
    facts->resumed = SSL_session_reused(ssl) == 1;
    return true;
}

static STACK_OF(X509) *chain(X509_STORE_CTX *context, bool verified) {
    return verified ? X509_STORE_CTX_get0_chain(context) : X509_STORE_CTX_get0_untrusted(context);
}

int curlew_chain_count(X509_STORE_CTX *context, bool verified) {
    STACK_OF(X509) *certificates = chain(context, verified);
    return certificates ? sk_X509_num(certificates) : 0;
}

uint8_t *curlew_chain_der(X509_STORE_CTX *context, bool verified, int index, int *length) {
    STACK_OF(X509) *certificates = chain(context, verified);
    if (!certificates || index >= sk_X509_num(certificates)) return NULL;
    uint8_t *bytes = NULL;
    *length = i2d_X509(sk_X509_value(certificates, index), &bytes);
    return *length > 0 ? bytes : NULL;
}

void curlew_free(void *memory) { OPENSSL_free(memory); }

bool curlew_leaf_matches(X509_STORE_CTX *context, const char *host) {
    X509 *leaf = X509_STORE_CTX_get0_cert(context);
    if (!leaf) return false;
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    if (address) {
        int matches = X509_check_ip(leaf, ASN1_STRING_get0_data(address), (size_t)ASN1_STRING_length(address), 0);
        ASN1_OCTET_STRING_free(address);
        return matches == 1;
    }
    size_t length = strlen(host);
    if (length > 1 && host[length - 1] == '.') length--;
    unsigned int flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
    return X509_check_host(leaf, host, length, flags, NULL) == 1;
}

static int add(X509_STORE *store, X509 *certificate) {
    int added = X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
    return added;
}

int curlew_store_add(X509_STORE *store, const uint8_t *bytes, size_t count) {
    if (count == 0 || count > INT32_MAX) return -1;
    int added = 0;
    const uint8_t *cursor = bytes;
    if (bytes[0] == 0x30) {
        X509 *certificate = d2i_X509(NULL, &cursor, (long)count);
        bool whole = certificate && cursor == bytes + count;
        if (!whole) X509_free(certificate);
        return whole && add(store, certificate) ? 1 : -1;
    }
    BIO *source = BIO_new_mem_buf(bytes, (int)count);
    if (!source) return -1;
    for (X509 *certificate; (certificate = PEM_read_bio_X509_AUX(source, NULL, NULL, NULL));) {
        added += add(store, certificate) ? 1 : 0;
    }
    unsigned long error = ERR_peek_last_error();
    bool ended = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    BIO_free(source);
    return ended ? added : -1;
}
