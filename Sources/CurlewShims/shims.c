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
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

const char *curlew_trusted_variable(const char *name) { return secure_getenv(name); }

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

void curlew_read_log_line(const char *text, size_t length, curlew_stream_log *log) {
    char line[128];
    if (length >= sizeof line) return;
    memcpy(line, text, length);
    line[length] = 0;
    unsigned number = 0;
    // libcurl 7.88.1 prints both lines, and misspells "received".
    if (sscanf(line, "Using Stream ID: %u", &number) == 1) log->stream = number;
    if (strncmp(line, "rec", 3) == 0 && sscanf(line, "%*s GOAWAY, error=%*d, last_stream=%u", &number) == 1) {
        log->last = number;
        log->has_goaway = true;
    }
}

static int log_line(CURL *easy, curl_infotype type, char *text, size_t length, void *context) {
    (void)easy;
    if (type == CURLINFO_TEXT) curlew_read_log_line(text, length, context);
    return 0;
}

void curlew_log_streams(CURL *easy, curlew_stream_log *log) {
    curl_easy_setopt(easy, CURLOPT_VERBOSE, log ? 1L : 0L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, log ? log_line : NULL);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, log);
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

void curlew_trim_heap(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
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

// Queries the kernel (sock_diag(7)) for the inode of the other end of a Unix socket; 0 when it is unknown.
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
    // The kernel's reply is available when send returns.
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

// Searches the numbers nearest to `descriptor` first, since both ends got the lowest free numbers at the same time.
// Without sock_diag the other end is unknown and stays unchanged.
void curlew_close_pair_on_exec(int descriptor) {
    uint32_t own, other;
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) < 0 || !is_socket(descriptor, &own)) return;
    uint32_t peer = peer_inode(own);
    if (peer == 0) return;
    for (int distance = 1; distance <= 8192; distance++) {
        for (int side = -1; side <= 1; side += 2) {
            int candidate = descriptor + side * distance;
            if (!is_socket(candidate, &other) || other != peer) continue;
            fcntl(candidate, F_SETFD, FD_CLOEXEC);
            return;
        }
    }
}

// An open Unix socket that may be one end of a wake-up pair.
typedef struct {
    int descriptor;
    // The unsent bytes (SIOCOUTQ) of one unread wake-up at the writing end; 0 at the reading end.
    int weight;
} wakeup_end;

static bool is_silent(int descriptor) {
    int waiting = 0, sent = 0;
    return ioctl(descriptor, FIONREAD, &waiting) == 0 && ioctl(descriptor, SIOCOUTQ, &sent) == 0 && waiting == 0 &&
           sent == 0;
}

static bool may_be_wakeup(int descriptor) {
    int domain = 0;
    socklen_t size = sizeof domain;
    int flags = fcntl(descriptor, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) return false;
    if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 || domain != AF_UNIX) return false;
    return is_silent(descriptor);
}

// Whether exactly `count` wake-ups are unread in a socket. In later rounds its weight must be the same as in the first.
static bool has_wakeups(wakeup_end *end, int count, bool is_first) {
    int waiting = 0, sent = 0;
    if (ioctl(end->descriptor, FIONREAD, &waiting) < 0 || ioctl(end->descriptor, SIOCOUTQ, &sent) < 0) return false;
    bool reads = waiting == count && sent == 0, writes = waiting == 0 && sent > 0 && sent % count == 0;
    int weight = writes ? sent / count : 0;
    if (is_first) end->weight = weight;
    return (reads || writes) && end->weight == weight;
}

// No API returns the descriptors, so two rounds of wake-ups identify them: only the pair has as many unread bytes as
// there were wake-ups, and no unread bytes after libcurl has read them. The counts of the rounds are random and differ,
// so that no socket of another thread matches: a message in it may weigh as much as all wake-ups of one round, but not
// of both.
void curlew_close_wakeup_on_exec(CURLM *multi) {
    enum { most = 1024 };
    wakeup_end ends[most];
    int count = 0, ready = 0, wakeups = 0;
    DIR *all = opendir("/proc/self/fd");
    if (!all) return;
    for (struct dirent *entry; (entry = readdir(all)) && count < most;) {
        int descriptor = atoi(entry->d_name);
        if (descriptor > 2 && may_be_wakeup(descriptor)) ends[count++].descriptor = descriptor;
    }
    closedir(all);
    for (int round = 0; round < 2 && count > 0; round++) {
        uint8_t chance = 0;
        if (getrandom(&chance, 1, 0) != 1) return;
        // A number from 2 to 31, different in the second round.
        wakeups = round == 0 ? 2 + chance % 30 : 2 + (wakeups - 2 + 1 + chance % 29) % 30;
        int kept = 0;
        for (int i = 0; i < wakeups; i++) {
            if (curl_multi_wakeup(multi) != CURLM_OK) return;
        }
        for (int i = 0; i < count; i++) {
            if (has_wakeups(&ends[i], wakeups, round == 0)) ends[kept++] = ends[i];
        }
        if (curl_multi_poll(multi, NULL, 0, 0, &ready) != CURLM_OK) return;
        count = 0;
        for (int i = 0; i < kept; i++) {
            if (is_silent(ends[i].descriptor)) ends[count++] = ends[i];
        }
    }
    for (int i = 0; i < count; i++) fcntl(ends[i].descriptor, F_SETFD, FD_CLOEXEC);
}

int curlew_dead_socket(void) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) return -1;
    close(pair[1]);
    return pair[0];
}

bool curlew_file_stamp(const char *path, curlew_stamp *stamp) {
    struct stat facts;
    if (stat(path, &facts) != 0) return false;
    *stamp = (curlew_stamp){
        .inode = facts.st_ino,
        .size = facts.st_size,
        .seconds = facts.st_mtim.tv_sec,
        .nanoseconds = facts.st_mtim.tv_nsec,
    };
    return true;
}

bool curlew_has_ended(int descriptor) {
    char byte;
    ssize_t count = recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

int curlew_unread(int descriptor) {
    int count = 0;
    return ioctl(descriptor, FIONREAD, &count) == 0 ? count : 0;
}

int curlew_unsent(int descriptor) {
    int count = 0;
    return ioctl(descriptor, SIOCOUTQ, &count) == 0 ? count : 0;
}

bool curlew_peer_has_ended(int descriptor) {
    struct pollfd entry = {.fd = descriptor, .events = POLLRDHUP};
    return poll(&entry, 1, 0) != 0;
}

static int port_of(int descriptor, bool is_peer) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    socklen_t length = sizeof address;
    int code = is_peer ? getpeername(descriptor, &address.any, &length) : getsockname(descriptor, &address.any, &length);
    if (code != 0) return -1;
    if (address.any.sa_family == AF_INET) return ntohs(address.v4.sin_port);
    return address.any.sa_family == AF_INET6 ? ntohs(address.v6.sin6_port) | 1 << 16 : -1;
}

int curlew_local_port(int descriptor) { return port_of(descriptor, false); }

int curlew_remote_port(int descriptor) { return port_of(descriptor, true); }

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

ptrdiff_t curlew_find(const void *bytes, size_t count, const void *wanted, size_t wanted_count) {
    const char *found = memmem(bytes, count, wanted, wanted_count);
    return found ? found - (const char *)bytes : -1;
}

ptrdiff_t curlew_find_last(const void *bytes, size_t count, uint8_t wanted) {
    const char *found = memrchr(bytes, wanted, count);
    return found ? found - (const char *)bytes : -1;
}

int curlew_reserve(int descriptor, int64_t offset, int64_t count) {
    int code;
    do code = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, offset, count) == 0 ? 0 : errno;
    while (code == EINTR);
    return code;
}

ptrdiff_t curlew_read_in_memory(int descriptor, void *memory, size_t count, int64_t offset) {
    struct iovec part = {.iov_base = memory, .iov_len = count};
    return preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
}

int curlew_rename_new(const char *from, const char *to) {
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // The file system does not support RENAME_NOREPLACE; link never replaces a file either.
    if (link(from, to) == 0) return unlink(from) == 0 ? 0 : errno;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    // The file system does not support hard links either: reserve the name with an empty file.
    int place = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (place < 0) return errno;
    close(place);
    if (rename(from, to) == 0) return 0;
    int code = errno;
    unlink(to);
    return code;
}
