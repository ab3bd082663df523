// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The smallest C program that sends a request, to measure the cost of starting libcurl.

#include <curl/curl.h>

static size_t count(char *bytes, size_t size, size_t number, void *context) {
    (void)bytes;
    *(size_t *)context += size * number;
    return size * number;
}

int main(int argc, char **argv) {
    size_t got = 0;
    long status = 0;
    CURL *easy = curl_easy_init();
    curl_easy_setopt(easy, CURLOPT_URL, argv[argc - 1]);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, count);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &got);
    CURLcode code = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return code || status != 200 || got != 1024;
}
