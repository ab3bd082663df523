// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kill_point.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static _Atomic long steps;
static long last;
static int is_torn;

// KILL_AT=n ends the process before its n-th step; with KILL_TORN=1, a step that writes first writes half of its bytes.
// KILL_AFTER=n ends the process after n microseconds.
__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("KILL_AT"), *after = getenv("KILL_AFTER");
    is_torn = getenv("KILL_TORN") != NULL;
    if (at) last = atol(at);
    if (!after) return;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGKILL;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
    long time = atol(after) + 1;
    struct itimerspec in = {.it_value = {time / 1000000, time % 1000000 * 1000}};
    if (timer_settime(timer, 0, &in, NULL) != 0) abort();
}

long kill_point_steps(void) { return atomic_load(&steps); }

static int is_last(void) { return atomic_fetch_add(&steps, 1) + 1 == last; }

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void step(void) {
    if (is_last()) end();
}

static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function) abort();
    return function;
}

#define CALL(name, type, ...) ((type)next(name))(__VA_ARGS__)

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    if (is_last()) {
        if (is_torn && count > 1) CALL("pwrite", ssize_t(*)(int, const void *, size_t, off_t), file, bytes, count / 2, at);
        end();
    }
    return CALL("pwrite", ssize_t(*)(int, const void *, size_t, off_t), file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) { return pwrite(file, bytes, count, at); }

int ftruncate(int file, off_t size) {
    step();
    return CALL("ftruncate", int (*)(int, off_t), file, size);
}

int ftruncate64(int file, off64_t size) { return ftruncate(file, size); }

int fallocate(int file, int mode, off_t at, off_t count) {
    step();
    return CALL("fallocate", int (*)(int, int, off_t, off_t), file, mode, at, count);
}

int fallocate64(int file, int mode, off64_t at, off64_t count) { return fallocate(file, mode, at, count); }

int fsync(int file) {
    step();
    return CALL("fsync", int (*)(int), file);
}

int fdatasync(int file) {
    step();
    return CALL("fdatasync", int (*)(int), file);
}

int rename(const char *from, const char *to) {
    step();
    return CALL("rename", int (*)(const char *, const char *), from, to);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags) {
    step();
    return CALL(
        "renameat2", int (*)(int, const char *, int, const char *, unsigned int), from_directory, from, to_directory, to,
        flags);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    step();
    return CALL(
        "renameat", int (*)(int, const char *, int, const char *), from_directory, from, to_directory, to);
}

// A step only if it may create a file.
int openat(int directory, const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
    va_end(list);
    if (flags & O_CREAT) step();
    return CALL("openat", int (*)(int, const char *, int, ...), directory, path, flags, mode);
}

int unlinkat(int directory, const char *path, int flags) {
    step();
    return CALL("unlinkat", int (*)(int, const char *, int), directory, path, flags);
}

int unlink(const char *path) {
    step();
    return CALL("unlink", int (*)(const char *), path);
}
