// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The floor: a client with the least CPU that we know how to reach with libcurl. `name=value` arguments specify the
// work (url, n, c, expect, http, ca, proxy, unix, upload, form, file, download, pace, collect); other arguments switch
// an optimization off, to measure its effect.

#define _GNU_SOURCE
#include "floor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static job work;
static uint64_t begun, finished, total;
static histogram latencies;

static char file_bytes[1 << 20];
static size_t filled;
static char part[4096];
static long long unsynced;

static int flush(void) {
    size_t wanted = filled;
    filled = 0;
    if (write(work.file, file_bytes, wanted) != (ssize_t)wanted) return 0;
    if (!work.download || (unsynced += (long long)wanted) < work.sync) return 1;
    unsynced = 0;
    return fdatasync(work.file) == 0;
}

static void open_file(const char *path) {
    work.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (work.file < 0) die("%s cannot be opened", path);
}

// A download has a temporary name and reserves its whole size; it gets its final name when it is on the disk.
static int reserve(CURL *easy) {
    curl_off_t expected = -1;
    curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &expected);
    return expected <= 0 || fallocate(work.file, FALLOC_FL_KEEP_SIZE, 0, expected) == 0 || errno == EOPNOTSUPP;
}

static void place(void) {
    if (fdatasync(work.file) || rename(part, work.download)) die("%s cannot be made", work.download);
    close(work.file);
    work.file = -1;
}

// libcurl delivers 16 KiB at a time; fewer and larger writes can be cheaper.
static int written(const char *bytes, size_t length) {
    if (!work.file_buffer) return write(work.file, bytes, length) == (ssize_t)length;
    if (filled + length > (size_t)work.file_buffer && !flush()) return 0;
    memcpy(file_bytes + filled, bytes, length);
    filled += length;
    return 1;
}

static size_t received(char *bytes, size_t size, size_t count, void *context) {
    slot *s = context;
    size_t length = size * count;
    if (work.pace_ms && !pace_allows(s, length)) return CURL_WRITEFUNC_PAUSE;
    if (work.download && s->got == 0 && !reserve(s->easy)) return 0;
    if (work.file >= 0 && !written(bytes, length)) return 0;
    if (work.collect) {
        if (!s->body) {
            curl_off_t expected = -1;
            curl_easy_getinfo(s->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &expected);
            if (expected != work.expect || !(s->body = malloc((size_t)expected))) return 0;
        }
        if (s->got + length > (size_t)work.expect) return 0;
        memcpy(s->body + s->got, bytes, length);
    }
    s->got += length;
    return length;
}

static char piece[256 << 10];

static size_t sent(char *buffer, size_t size, size_t count, void *context) {
    slot *s = context;
    size_t room = size * count, left = (size_t)work.upload - s->sent;
    if (room > left) room = left;
    for (size_t at = 0; at < room;) {
        size_t part = room - at < sizeof piece ? room - at : sizeof piece;
        memcpy(buffer + at, piece, part);
        at += part;
    }
    s->sent += room;
    loop_progress();
    return room;
}

// libcurl reads the files of a form itself; this callback only reports the number of sent bytes.
static int report_sent(void *context, curl_off_t size, curl_off_t got, curl_off_t all, curl_off_t sent) {
    slot *s = context;
    (void)size, (void)got, (void)all;
    if (s->sent != (size_t)sent) loop_progress();
    s->sent = (size_t)sent;
    return 0;
}

static void options(slot *s) {
    CURL *easy = s->easy;
    if (work.curlu) {
        curl_easy_setopt(easy, CURLOPT_CURLU, work.curlu);
    } else {
        curl_easy_setopt(easy, CURLOPT_URL, work.url);
    }
    curl_easy_setopt(easy, CURLOPT_PRIVATE, s);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, received);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, s);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, work.proxy);
    // Otherwise libcurl reads `no_proxy` for each request, and does not use the proxy for a server in `no_proxy`.
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
    if (work.proxy_fields) curl_easy_setopt(easy, CURLOPT_PROXYHEADER, work.proxy_fields);
    if (work.unix_socket) curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, work.unix_socket);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, work.buffer);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, work.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PIPEWAIT, work.pipewait);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, work.fresh);
    if (!work.default_capath) curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    if (work.ca) curl_easy_setopt(easy, CURLOPT_CAINFO, work.ca);
    if (work.ca && work.shared_store) share_store(easy, work.ca);
    curl_easy_setopt(easy, CURLOPT_SSL_SESSIONID_CACHE, work.resume);
    if (work.share) curl_easy_setopt(easy, CURLOPT_SHARE, work.share);
    if (work.fields) curl_easy_setopt(easy, CURLOPT_HTTPHEADER, work.fields);
    sockets_install(easy);
    if (work.form) {
        s->mime = curl_mime_init(easy);
        curl_mimepart *title = curl_mime_addpart(s->mime), *file = curl_mime_addpart(s->mime);
        curl_mime_name(title, "title");
        curl_mime_data(title, "Alps", CURL_ZERO_TERMINATED);
        curl_mime_name(file, "file");
        if (curl_mime_filedata(file, work.form)) die("%s cannot be read", work.form);
        curl_easy_setopt(easy, CURLOPT_MIMEPOST, s->mime);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "PUT");
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, work.upload_buffer);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, report_sent);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, s);
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    } else if (work.upload >= 0) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)work.upload);
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, work.upload_buffer);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, sent);
        curl_easy_setopt(easy, CURLOPT_READDATA, s);
    }
}

static void begin(slot *s) {
    if (begun == work.n) return;
    begun++;
    s->got = 0;
    s->sent = 0;
    if (work.new_handles || !s->easy) {
        if (s->easy) curl_easy_cleanup(s->easy);
        s->easy = curl_easy_init();
        options(s);
    }
    if (work.download) open_file(part);
    s->began = now_ns();
    if (curl_multi_add_handle(s->multi, s->easy)) die("a handle could not be added");
}

static void ended(slot *s, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code) die("request %llu: %s", (unsigned long long)finished, curl_easy_strerror(code));
    if (status != 200) die("request %llu: status %ld", (unsigned long long)finished, status);
    if (work.expect >= 0 && s->got != (size_t)work.expect)
        die("request %llu: %zu bytes, expected %lld", (unsigned long long)finished, s->got, work.expect);
    if (filled && !flush()) die("the file could not be written");
    if (work.download) place();
    struct stat file;
    if (work.form && (stat(work.form, &file) || s->sent <= (size_t)file.st_size)) die("the form was not sent to its end");
    if (!work.form && work.upload > 0 && s->sent != (size_t)work.upload) die("the upload was not read to its end");
    histogram_add(&latencies, now_ns() - s->began);
    total += s->got + s->sent;
    finished++;
    free(s->body);
    s->body = NULL;
    curl_multi_remove_handle(s->multi, s->easy);
    begin(s);
}

static void reap(void) {
    int left;
    CURLMsg *message;
    for (int i = 0; i < work.shards; i++) {
        CURLM *multi = loop_multi(i);
        while ((message = curl_multi_info_read(multi, &left))) {
            slot *s;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&s);
            ended(s, message->data.result);
        }
    }
}

static void read_options(int argc, char **argv) {
    work.url = text_option(argc, argv, "url", NULL);
    if (!work.url) die("usage: floor url=URL [name=value]…");
    work.n = (uint64_t)number_option(argc, argv, "n", 1);
    work.c = (int)number_option(argc, argv, "c", 1);
    work.expect = number_option(argc, argv, "expect", -1);
    work.upload = number_option(argc, argv, "upload", -1);
    work.form = text_option(argc, argv, "form", NULL);
    work.http2 = number_option(argc, argv, "http", 1) == 2;
    work.ca = text_option(argc, argv, "ca", NULL);
    work.proxy = text_option(argc, argv, "proxy", "");
    work.unix_socket = text_option(argc, argv, "unix", NULL);
    work.pace_ms = (int)number_option(argc, argv, "pace", 0);
    work.collect = (int)number_option(argc, argv, "collect", 0);
    int is_bulk = work.expect < 0 || work.expect > (1 << 20);
    // Optimizations; Benchmarks/README.md has the effect of each.
    work.buffer = (long)number_option(argc, argv, "buffer", is_bulk ? (work.ca ? 128 << 10 : 256 << 10) : 16 << 10);
    work.upload_buffer = (long)number_option(argc, argv, "upload-buffer", 256 << 10);
    work.file_buffer = (long)number_option(argc, argv, "file-buffer", 256 << 10);
    work.shards = (int)number_option(argc, argv, "shards", 1);
    if (work.file_buffer > (long)sizeof file_bytes || work.shards < 1) die("a knob is out of range");
    work.pipewait = (long)number_option(argc, argv, "pipewait", 1);
    work.fresh = (long)number_option(argc, argv, "fresh", 0);
    work.lazy = (int)number_option(argc, argv, "lazy", 1);
    work.default_capath = (int)number_option(argc, argv, "capath", 0);
    work.shared_store = (int)number_option(argc, argv, "shared-store", 0);
    work.resume = (long)number_option(argc, argv, "resume", 1);
    work.new_handles = (int)number_option(argc, argv, "new-handles", 0);
    if (number_option(argc, argv, "curlu", 1)) {
        work.curlu = curl_url();
        if (curl_url_set(work.curlu, CURLUPART_URL, work.url, 0)) die("the URL is not valid: %s", work.url);
    }
    if (number_option(argc, argv, "share", 0)) {
        work.share = curl_share_init();
        curl_share_setopt(work.share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    if (number_option(argc, argv, "fields", 1)) {
        work.fields = curl_slist_append(work.fields, "User-Agent: curlew-bench Curlew/0.1.0");
        work.fields = curl_slist_append(work.fields, "Accept-Encoding: gzip, deflate, br, zstd");
        // Curlew does not send this field, which libcurl adds.
        if (*work.proxy) work.proxy_fields = curl_slist_append(NULL, "Proxy-Connection:");
    }
    const char *file = text_option(argc, argv, "file", NULL);
    work.file = -1;
    if (file) open_file(file);
    work.sync = number_option(argc, argv, "sync", 64 << 20);
    work.download = text_option(argc, argv, "download", NULL);
    if (work.download && (work.c > 1 || snprintf(part, sizeof part, "%s.part", work.download) >= (int)sizeof part))
        die("one download at a time, with a shorter name");
}

int main(int argc, char **argv) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    read_options(argc, argv);
    loop_open(&work);
    slot *slots = calloc((size_t)work.c, sizeof *slots);
    meter m;
    meter_start(&m);
    for (int i = 0; i < work.c; i++) {
        slots[i].multi = loop_multi(i);
        begin(&slots[i]);
    }
    reap();
    while (finished < work.n) {
        loop_turn();
        reap();
    }
    meter_finish(&m, &latencies, finished, total, sockets_opened());
    return 0;
}
