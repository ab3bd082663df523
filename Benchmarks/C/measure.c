// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

#include "measure.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

const char *text_option(int argc, char **argv, const char *name, const char *fallback) {
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], name, length) && argv[i][length] == '=') return argv[i] + length + 1;
    return fallback;
}

long long number_option(int argc, char **argv, const char *name, long long fallback) {
    const char *text = text_option(argc, argv, name, NULL);
    return text ? atoll(text) : fallback;
}

void histogram_add(histogram *h, uint64_t ns) {
    if (ns < 32) ns = 32;
    int octave = 63 - __builtin_clzll(ns);
    h->buckets[octave * 32 + (int)((ns >> (octave - 5)) & 31)]++;
    h->count++;
}

static double histogram_at(const histogram *h, double share) {
    uint64_t wanted = (uint64_t)((double)h->count * share), seen = 0;
    for (int i = 0; i < 64 * 32; i++) {
        seen += h->buckets[i];
        if (h->buckets[i] && seen >= wanted) return (double)(1ull << (i / 32)) * (1.0 + (i % 32 + 0.5) / 32) / 1000;
    }
    return 0;
}

static long status_kib(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long value = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name))) value = atol(line + strlen(name) + 1);
    if (file) fclose(file);
    return value;
}

void meter_start(meter *m) {
    int clear = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (clear >= 0) {
        if (write(clear, "5", 1) < 0) perror("clear_refs");
        close(clear);
    }
    m->resident = status_kib("VmRSS");
    getrusage(RUSAGE_SELF, &m->usage);
    m->began = now_ns();
}

static double seconds(struct timeval t) { return (double)t.tv_sec + (double)t.tv_usec / 1e6; }

void meter_finish(const meter *m, const histogram *h, uint64_t requests, uint64_t bytes, uint64_t connections) {
    double wall = (double)(now_ns() - m->began) / 1e9;
    struct rusage end;
    getrusage(RUSAGE_SELF, &end);
    printf("{\"requests\": %llu, \"bytes\": %llu, \"wall\": %.6f, \"user\": %.6f, \"sys\": %.6f, ",
           (unsigned long long)requests, (unsigned long long)bytes, wall,
           seconds(end.ru_utime) - seconds(m->usage.ru_utime), seconds(end.ru_stime) - seconds(m->usage.ru_stime));
    printf("\"p50\": %.1f, \"p99\": %.1f, \"rss_base\": %ld, \"rss_peak\": %ld, ", histogram_at(h, 0.5),
           histogram_at(h, 0.99), m->resident, status_kib("VmHWM"));
    printf("\"voluntary\": %ld, \"involuntary\": %ld, \"connections\": %llu}\n",
           end.ru_nvcsw - m->usage.ru_nvcsw, end.ru_nivcsw - m->usage.ru_nivcsw, (unsigned long long)connections);
}
