// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
//
// Functions for CurlewTesting that Swift cannot import: OpenSSL's macros and variadic functions, two Linux calls that
// Glibc's module omits, and the generator of pattern bodies, which must be fast in a debug build too.

#ifndef CURLEW_TLS_SERVER_H
#define CURLEW_TLS_SERVER_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

// <sys/socket.h> declares it only under _GNU_SOURCE, which a header cannot rely on.
extern int accept4(int, struct sockaddr *_Nullable __restrict, socklen_t *_Nullable __restrict, int);

/// Creates an eventfd, close-on-exec and non-blocking; negative on failure.
static inline int curlew_make_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

/// Accepts a connection, close-on-exec and non-blocking; negative on failure.
static inline int curlew_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/// Creates an EC key on the curve, owned by the caller; NULL on failure.
static inline EVP_PKEY *_Nullable curlew_make_ec_key(const char *_Nonnull curve) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "EC", curve);
}

/// Creates an RSA key with `bits` bits, owned by the caller; NULL on failure.
static inline EVP_PKEY *_Nullable curlew_make_rsa_key(size_t bits) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits);
}

/// Creates an Ed25519 key, owned by the caller; NULL on failure.
static inline EVP_PKEY *_Nullable curlew_make_ed25519_key(void) {
    return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
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

/// Adds an extension with `value` as its bytes. Returns 1 on success.
static inline int curlew_add_verbatim_extension(
    X509 *_Nonnull certificate, const char *_Nonnull identifier, int critical, const uint8_t *_Nullable value, int count
) {
    ASN1_OBJECT *object = OBJ_txt2obj(identifier, 1);
    ASN1_OCTET_STRING *data = ASN1_OCTET_STRING_new();
    X509_EXTENSION *extension = NULL;
    int added = 0;
    if (object != NULL && data != NULL && ASN1_OCTET_STRING_set(data, value, count) == 1) {
        extension = X509_EXTENSION_create_by_OBJ(NULL, object, critical, data);
        added = extension != NULL && X509_add_ext(certificate, extension, -1);
    }
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(data);
    ASN1_OBJECT_free(object);
    return added;
}

/// Creates a name of the kind `type` (GEN_DNS and so on), owned by the caller; NULL on failure.
///
/// `value` has raw bytes, because OpenSSL's configuration syntax cannot express commas or NUL.
static inline GENERAL_NAME *_Nullable curlew_make_name(int type, const uint8_t *_Nullable value, int count) {
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING *text = ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
    if (name == NULL || text == NULL || ASN1_STRING_set(text, value, count) != 1) {
        ASN1_STRING_free(text);
        GENERAL_NAME_free(name);
        return NULL;
    }
    GENERAL_NAME_set0_value(name, type, text);
    return name;
}

/// Appends a name and transfers its ownership to the list. Returns 1 on success.
static inline int curlew_append_name(GENERAL_NAMES *_Nonnull names, GENERAL_NAME *_Nonnull name) {
    return sk_GENERAL_NAME_push(names, name) > 0;
}

/// Adds a permitted or excluded name and transfers its ownership to the constraints. Returns 1 on success.
static inline int curlew_constrain_name(
    NAME_CONSTRAINTS *_Nonnull constraints, int excluded, GENERAL_NAME *_Nonnull name
) {
    GENERAL_SUBTREE *subtree = GENERAL_SUBTREE_new();
    if (subtree == NULL) {
        GENERAL_NAME_free(name);
        return 0;
    }
    GENERAL_NAME_free(subtree->base);
    subtree->base = name;
    STACK_OF(GENERAL_SUBTREE) **list = excluded ? &constraints->excludedSubtrees : &constraints->permittedSubtrees;
    if (*list == NULL) {
        *list = sk_GENERAL_SUBTREE_new_null();
    }
    if (*list == NULL || sk_GENERAL_SUBTREE_push(*list, subtree) <= 0) {
        GENERAL_SUBTREE_free(subtree);
        return 0;
    }
    return 1;
}

/// Adds the authority key identifier of the issuer to a revocation list. Returns 1 on success.
static inline int curlew_add_list_issuer(X509_CRL *_Nonnull list, X509 *_Nonnull issuer) {
    X509V3_CTX context;
    memset(&context, 0, sizeof context);
    X509V3_set_ctx(&context, issuer, NULL, NULL, list, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, NID_authority_key_identifier, "keyid");
    if (extension == NULL) {
        return 0;
    }
    int added = X509_CRL_add_ext(list, extension, -1);
    X509_EXTENSION_free(extension);
    return added;
}

/// Creates a list of certificates, owned by the caller; NULL on failure.
static inline STACK_OF(X509) *_Nullable curlew_make_certificate_list(void) {
    return sk_X509_new_null();
}

/// Appends a certificate; the list retains it. Returns 1 on success.
static inline int curlew_append_certificate(STACK_OF(X509) *_Nonnull list, X509 *_Nonnull certificate) {
    return X509_add_cert(list, certificate, X509_ADD_FLAG_UP_REF);
}

/// Frees a list of certificates and its references.
static inline void curlew_free_certificate_list(STACK_OF(X509) *_Nullable list) {
    sk_X509_pop_free(list, X509_free);
}

/// Returns the number of certificates in a list.
static inline int curlew_count_certificates(const STACK_OF(X509) *_Nullable list) {
    return list == NULL ? 0 : sk_X509_num(list);
}

/// Returns a certificate of a list, owned by the list.
static inline X509 *_Nullable curlew_certificate_at(const STACK_OF(X509) *_Nonnull list, int index) {
    return sk_X509_value(list, index);
}

/// Passes a copy of the response to OpenSSL, which frees the copy.
static inline int curlew_attach_ocsp_response(SSL *_Nonnull connection, void *_Nonnull response) {
    const unsigned char *bytes = ASN1_STRING_get0_data(response);
    int count = ASN1_STRING_length(response);
    void *copy = OPENSSL_memdup(bytes, (size_t)count);
    if (copy == NULL) {
        return SSL_TLSEXT_ERR_NOACK;
    }
    SSL_set_tlsext_status_ocsp_resp(connection, copy, count);
    return SSL_TLSEXT_ERR_OK;
}

/// Sets the OCSP response for clients that request it (RFC 6066 §8). It must live as long as the context.
static inline void curlew_set_ocsp_response(SSL_CTX *_Nonnull context, ASN1_OCTET_STRING *_Nonnull response) {
    SSL_CTX_set_tlsext_status_cb(context, curlew_attach_ocsp_response);
    SSL_CTX_set_tlsext_status_arg(context, response);
}

/// Returns eight bytes of the pattern: the SplitMix64 output function of seed and position, so that any part can be
/// generated without the preceding parts.
static inline uint64_t curlew_pattern_word(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

/// Writes the pattern's bytes `offset ..< offset + count` to `out`, the least significant byte of each word first.
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
