// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The measurements that every C benchmark client makes of itself, and the line that it prints at the end.

#ifndef CURLEW_BENCH_MEASURE_H
#define CURLEW_BENCH_MEASURE_H

#include <stdint.h>
#include <sys/resource.h>

/// Latencies in buckets 3 % wide.
typedef struct {
    uint64_t count;
    uint32_t buckets[64 * 32];
} histogram;

/// The state of the process just before the first request.
typedef struct {
    struct rusage usage;
    uint64_t began;
    long resident;
} meter;

/// Returns the time of the monotonic clock in nanoseconds.
uint64_t now_ns(void);
void histogram_add(histogram *h, uint64_t ns);

/// Starts measuring and resets the peak of resident memory.
void meter_start(meter *m);

/// Prints the line of results.
void meter_finish(const meter *m, const histogram *h, uint64_t requests, uint64_t bytes, uint64_t connections);

/// Prints an error and ends the process.
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/// Returns the value of `name=value` in the arguments, or the fallback.
const char *text_option(int argc, char **argv, const char *name, const char *fallback);
long long number_option(int argc, char **argv, const char *name, long long fallback);

#endif
