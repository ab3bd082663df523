// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// What CurlewTesting needs and Swift cannot import: OpenSSL's macros and variadic functions, two Linux calls that
// Glibc's module leaves out, and the generator of pattern bodies, which has to be fast in a debug build too.

#ifndef CURLEW_TLS_SERVER_H
#define CURLEW_TLS_SERVER_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

// Declared by <sys/socket.h> only under _GNU_SOURCE, which a header cannot count on.
extern int accept4(int, struct sockaddr *_Nullable __restrict, socklen_t *_Nullable __restrict, int);

/// A new eventfd, close-on-exec and non-blocking; negative on failure.
static inline int curlew_make_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// Accepts a connection, close-on-exec and non-blocking; negative on failure.
static inline int curlew_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/// A new EC key on P-256, owned by the caller; NULL on failure.
static inline EVP_PKEY *_Nullable curlew_make_p256_key(void) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
}

/// Adds the extension `nid` with a value in OpenSSL's configuration syntax. Returns 1 on success.
static inline int curlew_add_extension(
    X509 *_Nonnull certificate, X509 *_Nonnull issuer, int nid, const char *_Nonnull value
) {
    X509V3_CTX context;
    memset(&context, 0, sizeof context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    if (extension == NULL) {
        return 0;
    }
    int added = X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/// Eight bytes of the pattern: the SplitMix64 output function over seed and position, so that any part can be made
/// without the parts before it.
static inline uint64_t curlew_pattern_word(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/// Writes the pattern's bytes `offset ..< offset + count` to `out`, least significant byte of each word first.
static inline void curlew_pattern_fill(uint8_t *_Nonnull out, size_t count, uint64_t seed, uint64_t offset) {
    size_t done = 0;
    while (done < count && (offset + done) % 8 != 0) {
        uint64_t at = offset + done;
        out[done++] = (uint8_t)(curlew_pattern_word(seed, at / 8) >> (8 * (at % 8)));
    }
    for (; done + 8 <= count; done += 8) {
        uint64_t word = curlew_pattern_word(seed, (offset + done) / 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        word = __builtin_bswap64(word);
#endif
        memcpy(out + done, &word, 8);
    }
    while (done < count) {
        uint64_t at = offset + done;
        out[done++] = (uint8_t)(curlew_pattern_word(seed, at / 8) >> (8 * (at % 8)));
    }
}

#endif
