// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's macros, stacks and callbacks: the judge of a connection, verification, and what certificates say.
#ifndef CURLEW_TLS_H
#define CURLEW_TLS_H

#include <curl/curl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdint.h>

// MARK: The judge of a connection

/// What OpenSSL asks and tells the judge of a connection, always on the thread that shakes hands.
typedef struct {
    /// Whether the server with this chain is accepted; asked in every full handshake, and in none that resumes.
    int (*verify)(X509_STORE_CTX *context, void *judge);
    /// Whether it is accepted with this OCSP response (NULL when there was none); asked after `verify`, when staples are
    /// wanted, also in handshakes that resume.
    int (*staple)(SSL *connection, const uint8_t *response, long count, void *judge);
    /// The server demands a certificate: the place to give one with curlew_identity_use.
    int (*identity)(SSL *connection, void *judge);
    /// The server sent an alert; 0 is close_notify.
    void (*alert)(int alert, void *judge);
    /// A handshake failed: whether because the connection ended, and not for anything that one of the two sides said.
    void (*failed)(bool is_cut, void *judge);
    /// Whether a TLS session that the server offers may be resumed later.
    int (*keeps)(void *judge);
    /// A line of the key log.
    void (*key)(const char *line, void *judge);
    /// The SSL_CTX is gone.
    void (*release)(void *judge);
} curlew_judge_calls;

/// What a connection is made with.
typedef struct {
    bool wants_staple;
    bool logs_keys;
    /// What is named to the server instead of the host; an empty text names nothing.
    const char *server_name;
    /// Cipher suites of TLS 1.2 and 1.3 in OpenSSL's syntax; NULL leaves the choice to OpenSSL.
    const char *ciphers;
    const char *suites;
} curlew_judge_options;

/// Lets the judge decide for every connection of `context`; it is released when OpenSSL frees the SSL_CTX. Returns false
/// when OpenSSL refuses; the judge is then released at once.
bool curlew_tls_install(void *context, void *judge, const curlew_judge_calls *calls,
                        const curlew_judge_options *options);

/// Whether OpenSSL knows at least one of the cipher suites named.
bool curlew_ciphers_are_known(const char *ciphers, const char *suites);

/// The judge of the TLS connection under a running transfer. NULL outside callbacks and without TLS.
void *curlew_tls_judge(CURL *easy);

typedef struct {
    const char *version;
    const char *cipher;
    bool resumed;
    /// Whether HTTP/2 was agreed on (ALPN).
    bool http2;
} curlew_tls_facts;

/// What the TLS connection under a running transfer agreed on. False outside callbacks and without TLS.
bool curlew_tls_read(CURL *easy, curlew_tls_facts *facts);
/// The server's own certificate, with a reference of its own. NULL outside callbacks and without TLS.
X509 *curlew_tls_certificate(CURL *easy);

int curlew_served_count(X509_STORE_CTX *context);
/// Certificate `index` as served, with a reference of its own.
X509 *curlew_served(X509_STORE_CTX *context, int index);

// MARK: Identities

/// Whether OpenSSL would show these certificates: it refuses weak keys and signatures. False with OpenSSL's error.
bool curlew_identity_is_usable(X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count);
/// Shows this certificate and the chain behind it to the server.
bool curlew_identity_use(SSL *connection, X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count);
/// The first private key of a PEM text. NULL, with OpenSSL's error, when there is none or the passphrase is wrong.
EVP_PKEY *curlew_key_read(const uint8_t *bytes, size_t count, const char *passphrase);
/// Key, leaf and the other certificates of a PKCS #12 file; each is owned by the caller. False with OpenSSL's error.
bool curlew_pkcs12_read(const uint8_t *bytes, size_t count, const char *passphrase, EVP_PKEY **key, X509 **leaf,
                        STACK_OF(X509) **others);
/// Subjects of the authorities that the server takes certificates of; freed with curlew_free. NULL at the end.
char *curlew_wanted_authority(SSL *connection, int index);

// MARK: Verification

typedef struct {
    X509 *const *served;
    int served_count;
    X509_CRL *const *lists;
    int list_count;
    /// Whether the lists are for every certificate of the chain, or for the server's own alone.
    bool checks_chain;
    /// Whether what RFC 5280 demands of conforming authorities is demanded as well (X509_V_FLAG_X509_STRICT).
    bool is_strict;
    /// Seconds since 1970.
    int64_t now;
} curlew_question;

typedef struct {
    /// X509_V_OK or why not, and which certificate that is about.
    int code;
    int depth;
    /// That certificate, with a reference of its own; may be NULL.
    X509 *offender;
    /// From the server's own certificate to the root, owned; NULL when there is no such chain.
    STACK_OF(X509) *chain;
    /// Whether the server's own certificate is one of the roots, so that its path ends with it.
    bool is_anchor;
} curlew_verdict;

/// An empty store of roots: chains may end at any certificate in it, and must have a security of 112 bits.
X509_STORE *curlew_store_make(void);

/// Verifies a chain for a TLS server (RFC 5280 §6) with the roots in `store`.
void curlew_verify(X509_STORE *store, const curlew_question *question, curlew_verdict *verdict);

int curlew_stack_count(const STACK_OF(X509) *stack);
/// Certificate `index`, with a reference of its own.
X509 *curlew_stack_at(const STACK_OF(X509) *stack, int index);
void curlew_stack_free(STACK_OF(X509) *stack);

enum {
    curlew_staple_good,
    curlew_staple_revoked,
    curlew_staple_unknown,
    curlew_staple_unsuccessful,
    curlew_staple_malformed,
    curlew_staple_forged,
    curlew_staple_stale,
    curlew_staple_other,
    curlew_staple_no_issuer,
};

/// What an OCSP response (RFC 6960) says of the first certificate of a verified chain.
int curlew_staple_read(X509_STORE *store, const uint8_t *response, size_t count, X509 *const *chain, int chain_count,
                       int64_t now);

// MARK: What certificates say

/// Every certificate of a PEM text or one in DER: NULL, with OpenSSL's error, when something in it is unreadable.
STACK_OF(X509) *curlew_certificates_read(const uint8_t *bytes, size_t count);
/// Every certificate revocation list of a PEM text, or those in DER: NULL, with OpenSSL's error, when one is unreadable.
STACK_OF(X509_CRL) *curlew_lists_read(const uint8_t *bytes, size_t count);
int curlew_lists_count(const STACK_OF(X509_CRL) *lists);
/// List `index`, with a reference of its own.
X509_CRL *curlew_lists_at(const STACK_OF(X509_CRL) *lists, int index);
void curlew_lists_free(STACK_OF(X509_CRL) *lists);

/// A name as RFC 4514 writes it, to be freed with curlew_free.
char *curlew_name_text(const X509_NAME *name);

enum { curlew_text_subject, curlew_text_issuer, curlew_text_serial, curlew_text_key, curlew_text_signature };

/// A part of a certificate as text, to be freed with curlew_free.
char *curlew_certificate_text(X509 *certificate, int part);
/// Seconds since 1970. False for NULL and nonsense.
bool curlew_seconds(const ASN1_TIME *time, int64_t *result);
/// When a certificate begins and ends to be valid, in seconds since 1970. False when it says nonsense.
bool curlew_certificate_times(X509 *certificate, int64_t *begins, int64_t *ends);
/// DER of a certificate or of its public key (SubjectPublicKeyInfo), to be freed with curlew_free.
uint8_t *curlew_certificate_der(X509 *certificate, bool key_alone, int *length);
uint8_t *curlew_list_der(X509_CRL *list, int *length);
char *curlew_list_issuer(X509_CRL *list);
/// The subject alternative names, parsed anew; NULL when there are none, or none that can be read.
GENERAL_NAMES *curlew_names_read(X509 *certificate);
int curlew_names_count(const GENERAL_NAMES *names);
/// Name `index`: its kind (GEN_DNS and so on) and bytes, which belong to `names`.
const uint8_t *curlew_names_at(const GENERAL_NAMES *names, int index, int *kind, int *length);
void curlew_names_free(GENERAL_NAMES *names);
/// Whether the certificate names the host: DNS names by RFC 9525 (whole-label wildcards, never the CN), or an IP address.
bool curlew_certificate_is_for(X509 *certificate, const char *host, bool by_wildcards);
/// Whether its extended key usage names any usage (RFC 5280 §4.2.1.12).
bool curlew_certificate_is_for_any_usage(X509 *certificate);

enum { curlew_constraint_met, curlew_constraint_permits_others, curlew_constraint_excludes, curlew_constraint_unreadable };

/// What the name constraints of an authority's certificate (RFC 5280 §4.2.1.10) say of a DNS name or an IP address.
int curlew_certificate_constrains(X509 *authority, const char *host);
/// Whether it is valid only together with an OCSP response (RFC 7633).
bool curlew_certificate_must_staple(X509 *certificate);
bool curlew_certificate_is_authority(X509 *certificate);
bool curlew_certificate_is_self_issued(X509 *certificate);
void curlew_sha256(const uint8_t *bytes, size_t count, uint8_t digest[32]);
void curlew_free(void *memory);
/// OpenSSL's reason for the last failure on this thread, which is then forgotten; never NULL.
const char *curlew_tls_reason(void);

#endif
