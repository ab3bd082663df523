// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// The TLS options that only OpenSSL has, and their use: a new option changes this file and both configurations in
// Swift.
#ifndef CURLEW_TLS_OPTIONS_H
#define CURLEW_TLS_OPTIONS_H

#include <openssl/ssl.h>
#include <stdbool.h>

/// The options of a connection.
typedef struct {
    bool wants_ocsp_response;
    bool logs_keys;
    /// The server name (SNI) instead of the host; an empty string sends no name.
    const char *server_name;
    /// Cipher suites of TLS 1.2 and 1.3 in OpenSSL's syntax; NULL leaves the choice to OpenSSL.
    const char *ciphers;
    const char *suites;
} curlew_judge_options;

/// Sets the options that need no callback. Returns false when OpenSSL refuses one.
static inline bool curlew_tls_apply(SSL_CTX *context, const curlew_judge_options *options) {
    return (!options->ciphers || SSL_CTX_set_cipher_list(context, options->ciphers)) &&
           (!options->suites || SSL_CTX_set_ciphersuites(context, options->suites));
}

#endif
