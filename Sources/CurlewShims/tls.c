// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_tls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// MARK: The judge of a connection

typedef struct {
    void *judge;
    curlew_judge_callbacks calls;
    /// libcurl's callback that stores TLS sessions.
    int (*keep)(SSL *, SSL_SESSION *);
    /// The server name (SNI), owned; NULL leaves the host.
    char *server_name;
} owned_judge;

static void free_judge(void *parent, void *pointer, CRYPTO_EX_DATA *data, int index, long argl, void *argp) {
    (void)parent, (void)data, (void)index, (void)argl, (void)argp;
    owned_judge *owned = pointer;
    if (!owned) return;
    owned->calls.release(owned->judge);
    free(owned->server_name);
    free(owned);
}

static int judge_index = -1;
static void make_index(void) { judge_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_judge); }

static owned_judge *judge_of(const SSL *ssl) { return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), judge_index); }

// Returns whether a stopped handshake has failed. Sets `is_cut` if the end of the connection is the only error: a
// reset, an end in the middle, or close_notify, which is not an error alert (RFC 8446 section 6). OpenSSL's error stays
// in its queue.
static bool has_failed(const SSL *ssl, int value, bool *is_cut) {
    switch (SSL_get_error(ssl, value)) {
        case SSL_ERROR_SYSCALL:
        case SSL_ERROR_ZERO_RETURN: *is_cut = true; return true;
        case SSL_ERROR_SSL: {
            unsigned long error = ERR_peek_error();
            *is_cut = ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
            return true;
        }
        default: return false;
    }
}

// Reports the peer's close_notify when it is read, because libcurl's close makes OpenSSL forget it.
static void note(const SSL *ssl, int where, int value) {
    owned_judge *owned = judge_of(ssl);
    if (!owned) return;
    if (where == SSL_CB_READ_ALERT) owned->calls.alert(value & 0xFF, owned->judge);
    bool is_cut = false;
    if (where == SSL_CB_CONNECT_EXIT && value <= 0 && has_failed(ssl, value, &is_cut))
        owned->calls.failed(is_cut, owned->judge);
    if (where == SSL_CB_HANDSHAKE_START && owned->server_name) {
        char *name = *owned->server_name ? owned->server_name : NULL;
        // OpenSSL writes the ClientHello after this callback.
        SSL_set_tlsext_host_name((SSL *)ssl, name);
    }
}

static int check_ocsp_response(SSL *ssl, void *unused) {
    (void)unused;
    owned_judge *owned = judge_of(ssl);
    const unsigned char *response = NULL;
    long count = SSL_get_tlsext_status_ocsp_resp(ssl, &response);
    bool accepted = owned && owned->calls.ocspResponse(ssl, count > 0 ? response : NULL, count, owned->judge);
    // An error that the callback left in the queue would look like an error of the handshake.
    ERR_clear_error();
    return accepted;
}

static int set_identity(SSL *ssl, void *unused) {
    (void)unused;
    owned_judge *owned = judge_of(ssl);
    bool given = owned && owned->calls.identity(ssl, owned->judge);
    if (given) ERR_clear_error();
    return given;
}

static int keep_session(SSL *ssl, SSL_SESSION *session) {
    owned_judge *owned = judge_of(ssl);
    return owned && owned->keep && owned->calls.keeps(owned->judge) ? owned->keep(ssl, session) : 0;
}

static void log_key(const SSL *ssl, const char *line) {
    owned_judge *owned = judge_of(ssl);
    if (owned) owned->calls.key(line, owned->judge);
}

bool curlew_ciphers_are_known(const char *ciphers, const char *suites) {
    curlew_judge_options options = {.ciphers = ciphers, .suites = suites};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    bool known = context && curlew_tls_apply(context, &options);
    SSL_CTX_free(context);
    ERR_clear_error();
    return known;
}

bool curlew_tls_install(void *pointer, void *judge, const curlew_judge_callbacks *calls,
                        const curlew_judge_options *options) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_index);
    SSL_CTX *context = pointer;
    owned_judge *owned = calloc(1, sizeof *owned);
    char *name = options->server_name ? strdup(options->server_name) : NULL;
    if (owned) *owned = (owned_judge){.judge = judge, .calls = *calls, .server_name = name};
    if (!owned || (options->server_name && !name) || judge_index < 0 ||
        !SSL_CTX_set_ex_data(context, judge_index, owned)) {
        free(name);
        free(owned);
        calls->release(judge);
        return false;
    }
    SSL_CTX_set_cert_verify_callback(context, calls->verify, judge);
    SSL_CTX_set_info_callback(context, note);
    SSL_CTX_set_cert_cb(context, set_identity, NULL);
    owned->keep = SSL_CTX_sess_get_new_cb(context);
    SSL_CTX_sess_set_new_cb(context, keep_session);
    // Replaces libcurl's callback, which it sets when SSLKEYLOGFILE is in the environment.
    SSL_CTX_set_keylog_callback(context, options->logs_keys ? log_key : NULL);
    if (options->wants_ocsp_response) {
        SSL_CTX_set_tlsext_status_type(context, TLSEXT_STATUSTYPE_ocsp);
        SSL_CTX_set_tlsext_status_cb(context, check_ocsp_response);
    }
    return curlew_tls_apply(context, options);
}

static SSL *connection_of(CURL *easy) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || !session) return NULL;
    return session->internals;
}

void *curlew_tls_judge(CURL *easy) {
    SSL *ssl = connection_of(easy);
    owned_judge *owned = ssl ? judge_of(ssl) : NULL;
    return owned ? owned->judge : NULL;
}

bool curlew_tls_read(CURL *easy, curlew_tls_facts *facts) {
    SSL *ssl = connection_of(easy);
    if (!ssl) return false;
    const unsigned char *protocol = NULL;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl, &protocol, &length);
    facts->http2 = length == 2 && memcmp(protocol, "h2", 2) == 0;
    facts->http3 = length == 2 && memcmp(protocol, "h3", 2) == 0;
    facts->version = SSL_get_version(ssl);
    facts->cipher = SSL_CIPHER_get_name(SSL_get_current_cipher(ssl));
    facts->resumed = SSL_session_reused(ssl) == 1;
    return true;
}

X509 *curlew_tls_certificate(CURL *easy) {
    SSL *ssl = connection_of(easy);
    return ssl ? SSL_get1_peer_certificate(ssl) : NULL;
}

int curlew_sent_count(X509_STORE_CTX *context) {
    STACK_OF(X509) *served = X509_STORE_CTX_get0_untrusted(context);
    return served ? sk_X509_num(served) : 0;
}

X509 *curlew_sent_certificate(X509_STORE_CTX *context, int index) {
    return curlew_stack_at(X509_STORE_CTX_get0_untrusted(context), index);
}

// MARK: Identities

bool curlew_identity_is_usable(X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count) {
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *connection = context ? SSL_new(context) : NULL;
    bool usable = connection && curlew_identity_use(connection, leaf, key, chain, count);
    SSL_free(connection);
    SSL_CTX_free(context);
    return usable;
}

bool curlew_identity_use(SSL *connection, X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count) {
    STACK_OF(X509) *others = sk_X509_new_null();
    bool used = others != NULL;
    for (int i = 0; used && i < count; i++) used = sk_X509_push(others, chain[i]) > 0;
    used = used && SSL_use_cert_and_key(connection, leaf, key, others, 1) == 1;
    sk_X509_free(others);
    return used;
}

// Called for an encrypted key; without this callback OpenSSL would prompt for a passphrase on the terminal.
static int give_passphrase(char *buffer, int size, int writes, void *passphrase) {
    (void)writes;
    size_t length = passphrase ? strlen(passphrase) : 0;
    if (!passphrase || length > (size_t)size) return -1;
    memcpy(buffer, passphrase, length);
    return (int)length;
}

EVP_PKEY *curlew_key_read(const uint8_t *bytes, size_t count, const char *passphrase) {
    BIO *source = count <= INT32_MAX ? BIO_new_mem_buf(bytes, (int)count) : NULL;
    EVP_PKEY *key = source ? PEM_read_bio_PrivateKey(source, NULL, give_passphrase, (void *)passphrase) : NULL;
    BIO_free(source);
    return key;
}

bool curlew_pkcs12_read(const uint8_t *bytes, size_t count, const char *passphrase, EVP_PKEY **key, X509 **leaf,
                        STACK_OF(X509) **others) {
    const uint8_t *cursor = bytes;
    *key = NULL, *leaf = NULL, *others = NULL;
    PKCS12 *file = count <= INT32_MAX ? d2i_PKCS12(NULL, &cursor, (long)count) : NULL;
    bool read = file && cursor == bytes + count && PKCS12_parse(file, passphrase, key, leaf, others) == 1;
    PKCS12_free(file);
    return read;
}

char *curlew_accepted_authority(SSL *connection, int index) {
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(connection);
    if (!names || index >= sk_X509_NAME_num(names)) return NULL;
    return curlew_name_text(sk_X509_NAME_value(names, index));
}
