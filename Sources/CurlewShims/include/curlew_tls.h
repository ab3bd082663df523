// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Wrappers for OpenSSL's macros, stacks and callbacks: the judge of a connection, verification, and certificate fields.
#ifndef CURLEW_TLS_H
#define CURLEW_TLS_H

#include "curlew_tls_options.h"

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

/// The callbacks of the judge of a connection; OpenSSL calls them on the thread of the handshake.
typedef struct {
    /// Whether the server with this chain is accepted; called in every full handshake, but not when a session is
    /// resumed.
    int (*verify)(X509_STORE_CTX *context, void *judge);
    /// Whether the server is accepted with this OCSP response (NULL without one); called after `verify` if
    /// `wants_ocsp_response` is set, also when a session is resumed.
    int (*ocspResponse)(SSL *connection, const uint8_t *response, long count, void *judge);
    /// The server requests a client certificate; set one with curlew_identity_use.
    int (*identity)(SSL *connection, void *judge);
    /// The server sent an alert; 0 is close_notify.
    void (*alert)(int alert, void *judge);
    /// A handshake failed; `is_cut` means that the connection ended without an error of either side.
    void (*failed)(bool is_cut, void *judge);
    /// Whether a TLS session that the server offers may be resumed later.
    int (*keeps)(void *judge);
    /// A line of the key log.
    void (*key)(const char *line, void *judge);
    /// The SSL_CTX is freed.
    void (*release)(void *judge);
} curlew_judge_callbacks;

/// Makes the judge decide for every connection of `context`; it is released when OpenSSL frees the SSL_CTX. Returns
/// false when OpenSSL reports an error; if the judge was not attached, it is released at once.
bool curlew_tls_install(void *context, void *judge, const curlew_judge_callbacks *calls,
                        const curlew_judge_options *options);

/// Whether OpenSSL knows at least one of the named cipher suites.
bool curlew_ciphers_are_known(const char *ciphers, const char *suites);

/// Returns the judge of the TLS connection of a running transfer; NULL outside callbacks and without TLS.
void *curlew_tls_judge(CURL *easy);

typedef struct {
    const char *version;
    const char *cipher;
    bool resumed;
    /// Whether HTTP/2 was negotiated (ALPN).
    bool http2;
    /// Whether HTTP/3 was negotiated.
    bool http3;
} curlew_tls_facts;

/// Reads the negotiated parameters of the TLS connection of a running transfer; false outside callbacks and without
/// TLS.
bool curlew_tls_read(CURL *easy, curlew_tls_facts *facts);
/// Returns the server's own certificate, owned by the caller; NULL outside callbacks and without TLS.
X509 *curlew_tls_certificate(CURL *easy);

int curlew_sent_count(X509_STORE_CTX *context);
/// Returns certificate `index` of those that the server sent, owned by the caller.
X509 *curlew_sent_certificate(X509_STORE_CTX *context, int index);

// MARK: Identities

/// Whether OpenSSL accepts these certificates as an identity: it refuses weak keys and signatures. False with OpenSSL's
/// error.
bool curlew_identity_is_usable(X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count);
/// Sets this certificate and its chain as the client identity of a connection.
bool curlew_identity_use(SSL *connection, X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count);
/// Reads the first private key of a PEM text; NULL, with OpenSSL's error, without a key or with a wrong passphrase.
EVP_PKEY *curlew_key_read(const uint8_t *bytes, size_t count, const char *passphrase);
/// Reads the key, leaf and other certificates of a PKCS #12 file, owned by the caller; false with OpenSSL's error.
bool curlew_pkcs12_read(const uint8_t *bytes, size_t count, const char *passphrase, EVP_PKEY **key, X509 **leaf,
                        STACK_OF(X509) **others);
/// Returns the subject of authority `index` of those whose certificates the server accepts, to be freed with
/// curlew_free; NULL after the last one.
char *curlew_accepted_authority(SSL *connection, int index);

// MARK: Verification

typedef struct {
    X509 *const *served;
    int served_count;
    X509_CRL *const *lists;
    int list_count;
    /// Whether revocation is checked for the whole chain or only for the server's certificate.
    bool checks_chain;
    /// Whether RFC 5280's requirements on conforming authorities are enforced too (X509_V_FLAG_X509_STRICT).
    bool is_strict;
    /// The current time in seconds since 1970.
    int64_t now;
} curlew_verify_input;

typedef struct {
    /// X509_V_OK or the reason for rejecting the chain.
    int code;
    /// The index of the rejected certificate.
    int depth;
    /// The rejected certificate, owned; may be NULL.
    X509 *rejectedCertificate;
    /// The chain from the server's own certificate to the root, owned; NULL when the chain is invalid.
    STACK_OF(X509) *chain;
    /// Whether the server's own certificate is one of the roots.
    bool is_anchor;
} curlew_verdict;

/// Creates an empty store of roots: chains may end at any certificate in it and must have a security of 112 bits.
X509_STORE *curlew_store_make(void);

/// Verifies a chain for a TLS server (RFC 5280 §6) with the roots in `store`.
void curlew_verify(X509_STORE *store, const curlew_verify_input *question, curlew_verdict *verdict);

int curlew_stack_count(const STACK_OF(X509) *stack);
/// Returns certificate `index`, owned by the caller.
X509 *curlew_stack_at(const STACK_OF(X509) *stack, int index);
void curlew_stack_free(STACK_OF(X509) *stack);

enum {
    curlew_ocsp_good,
    curlew_ocsp_revoked,
    curlew_ocsp_unknown,
    curlew_ocsp_unsuccessful,
    curlew_ocsp_malformed,
    curlew_ocsp_forged,
    curlew_ocsp_stale,
    curlew_ocsp_other,
    curlew_ocsp_no_issuer,
};

/// Reads the status of the first certificate of a verified chain from an OCSP response (RFC 6960).
int curlew_ocsp_read(X509_STORE *store, const uint8_t *response, size_t count, X509 *const *chain, int chain_count,
                       int64_t now);

// MARK: Certificate fields

/// Reads every certificate of a PEM text, or one in DER; NULL, with OpenSSL's error, when one is unreadable.
STACK_OF(X509) *curlew_certificates_read(const uint8_t *bytes, size_t count);
/// Reads every certificate revocation list of a PEM text or of DER; NULL, with OpenSSL's error, when one is unreadable.
STACK_OF(X509_CRL) *curlew_lists_read(const uint8_t *bytes, size_t count);
int curlew_lists_count(const STACK_OF(X509_CRL) *lists);
/// Returns list `index`, owned by the caller.
X509_CRL *curlew_lists_at(const STACK_OF(X509_CRL) *lists, int index);
void curlew_lists_free(STACK_OF(X509_CRL) *lists);

/// Returns a name in the notation of RFC 4514, to be freed with curlew_free.
char *curlew_name_text(const X509_NAME *name);

enum { curlew_text_subject, curlew_text_issuer, curlew_text_serial, curlew_text_key, curlew_text_signature };

/// Returns a field of a certificate as text, to be freed with curlew_free.
char *curlew_certificate_text(X509 *certificate, int part);
/// Converts a time to seconds since 1970; false for NULL and for invalid times.
bool curlew_time_seconds(const ASN1_TIME *time, int64_t *result);
/// Reads the validity period of a certificate in seconds since 1970; false for invalid times.
bool curlew_certificate_times(X509 *certificate, int64_t *begins, int64_t *ends);
/// Returns the DER of a certificate or of its public key (SubjectPublicKeyInfo), to be freed with curlew_free.
uint8_t *curlew_certificate_der(X509 *certificate, bool key_only, int *length);
uint8_t *curlew_list_der(X509_CRL *list, int *length);
char *curlew_list_issuer(X509_CRL *list);
/// Parses the subject alternative names; NULL when the extension is missing or unreadable.
GENERAL_NAMES *curlew_names_read(X509 *certificate);
int curlew_names_count(const GENERAL_NAMES *names);
/// Returns the kind (GEN_DNS and so on) and the bytes of name `index`; the bytes belong to `names`.
const uint8_t *curlew_names_at(const GENERAL_NAMES *names, int index, int *kind, int *length);
void curlew_names_free(GENERAL_NAMES *names);
/// Whether the certificate names the host: DNS names by RFC 9525 (whole-label wildcards, never the CN), or an IP
/// address.
bool curlew_certificate_is_for(X509 *certificate, const char *host, bool by_wildcards);
/// Whether the extended key usage contains anyExtendedKeyUsage (RFC 5280 §4.2.1.12).
bool curlew_certificate_is_for_any_usage(X509 *certificate);

enum { curlew_constraint_met, curlew_constraint_permits_others, curlew_constraint_excludes, curlew_constraint_unreadable };

/// Checks a DNS name or an IP address against the name constraints of an authority's certificate (RFC 5280 §4.2.1.10).
int curlew_certificate_constrains(X509 *authority, const char *host);
/// Whether the certificate is valid only together with an OCSP response (RFC 7633).
bool curlew_certificate_must_staple(X509 *certificate);
bool curlew_certificate_is_authority(X509 *certificate);
bool curlew_certificate_is_self_issued(X509 *certificate);
void curlew_sha256(const uint8_t *bytes, size_t count, uint8_t digest[32]);
void curlew_free(void *memory);
/// Returns OpenSSL's reason for the last failure on this thread and clears its error queue; never NULL.
const char *curlew_tls_reason(void);

#endif
