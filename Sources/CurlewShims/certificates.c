// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_tls.h"

#include <string.h>

char *curlew_name_text(const X509_NAME *name) {
    BIO *sink = BIO_new(BIO_s_mem());
    if (!sink) return NULL;
    X509_NAME_print_ex(sink, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
    char *bytes = NULL;
    long length = BIO_get_mem_data(sink, &bytes);
    char *text = length >= 0 ? OPENSSL_strndup(length ? bytes : "", (size_t)length) : NULL;
    BIO_free(sink);
    return text;
}

// Whether the bytes begin like a DER SEQUENCE of more than 127 bytes; PEM text never does.
static bool is_der(const uint8_t *bytes, size_t count) { return count > 1 && bytes[0] == 0x30 && bytes[1] & 0x80; }

static STACK_OF(X509) *read_pem(const uint8_t *bytes, size_t count) {
    STACK_OF(X509) *all = sk_X509_new_null();
    BIO *source = BIO_new_mem_buf(bytes, (int)count);
    bool fine = all && source;
    for (X509 *one; fine && (one = PEM_read_bio_X509_AUX(source, NULL, NULL, NULL));) {
        fine = sk_X509_push(all, one) > 0;
        if (!fine) X509_free(one);
    }
    unsigned long error = ERR_peek_last_error();
    bool ended = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
    BIO_free(source);
    if (fine && ended) {
        ERR_clear_error();
        return all;
    }
    curlew_stack_free(all);
    return NULL;
}

STACK_OF(X509) *curlew_certificates_read(const uint8_t *bytes, size_t count) {
    ERR_clear_error();
    if (count == 0) return sk_X509_new_null();
    if (count > INT32_MAX) return NULL;
    if (!is_der(bytes, count)) return read_pem(bytes, count);
    const uint8_t *cursor = bytes;
    X509 *one = d2i_X509(NULL, &cursor, (long)count);
    STACK_OF(X509) *all = one && cursor == bytes + count ? sk_X509_new_null() : NULL;
    if (all && sk_X509_push(all, one) > 0) return all;
    X509_free(one);
    sk_X509_free(all);
    return NULL;
}

STACK_OF(X509_CRL) *curlew_lists_read(const uint8_t *bytes, size_t count) {
    ERR_clear_error();
    STACK_OF(X509_CRL) *all = count <= INT32_MAX ? sk_X509_CRL_new_null() : NULL;
    bool der = is_der(bytes, count), fine = all != NULL;
    const uint8_t *cursor = bytes;
    BIO *source = fine && !der ? BIO_new_mem_buf(bytes, (int)count) : NULL;
    while (fine && (der ? cursor < bytes + count : source != NULL)) {
        X509_CRL *one = der ? d2i_X509_CRL(NULL, &cursor, (long)(bytes + count - cursor))
                            : PEM_read_bio_X509_CRL(source, NULL, NULL, NULL);
        if (!one) {
            unsigned long error = ERR_peek_last_error();
            fine = !der && ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
            break;
        }
        fine = sk_X509_CRL_push(all, one) > 0;
        if (!fine) X509_CRL_free(one);
    }
    BIO_free(source);
    if (fine) {
        ERR_clear_error();
        return all;
    }
    sk_X509_CRL_pop_free(all, X509_CRL_free);
    return NULL;
}

int curlew_lists_count(const STACK_OF(X509_CRL) *lists) { return lists ? sk_X509_CRL_num(lists) : 0; }

X509_CRL *curlew_lists_at(const STACK_OF(X509_CRL) *lists, int index) {
    X509_CRL *list = lists ? sk_X509_CRL_value(lists, index) : NULL;
    if (list) X509_CRL_up_ref(list);
    return list;
}

void curlew_lists_free(STACK_OF(X509_CRL) *lists) { sk_X509_CRL_pop_free(lists, X509_CRL_free); }

static char *key_text(X509 *certificate) {
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    char text[96];
    if (!key) {
        ERR_clear_error();
        return OPENSSL_strdup("unknown");
    }
    const char *type = EVP_PKEY_get0_type_name(key);
    char group[64] = "";
    size_t length = 0;
    if (EVP_PKEY_get_group_name(key, group, sizeof group, &length) == 1 && length > 0) {
        const char *nist = EC_curve_nid2nist(OBJ_txt2nid(group));
        snprintf(text, sizeof text, "%s %s", type ? type : "unknown", nist ? nist : group);
    } else if (EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448")) {
        snprintf(text, sizeof text, "%s", type);
    } else {
        snprintf(text, sizeof text, "%s %d", type ? type : "unknown", EVP_PKEY_get_bits(key));
    }
    ERR_clear_error();
    return OPENSSL_strdup(text);
}

char *curlew_certificate_text(X509 *certificate, int part) {
    switch (part) {
    case curlew_text_subject: return curlew_name_text(X509_get_subject_name(certificate));
    case curlew_text_issuer: return curlew_name_text(X509_get_issuer_name(certificate));
    case curlew_text_serial: {
        BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
        char *text = number ? BN_bn2hex(number) : NULL;
        BN_free(number);
        return text;
    }
    case curlew_text_key: return key_text(certificate);
    default: {
        const char *name = OBJ_nid2ln(X509_get_signature_nid(certificate));
        return OPENSSL_strdup(name ? name : "unknown");
    }
    }
}

bool curlew_time_seconds(const ASN1_TIME *time, int64_t *result) {
    struct tm parts;
    if (!time || !ASN1_TIME_to_tm(time, &parts)) return false;
    *result = timegm(&parts);
    return true;
}

bool curlew_certificate_times(X509 *certificate, int64_t *begins, int64_t *ends) {
    bool fine = curlew_time_seconds(X509_get0_notBefore(certificate), begins) &&
                curlew_time_seconds(X509_get0_notAfter(certificate), ends);
    ERR_clear_error();
    return fine;
}

uint8_t *curlew_certificate_der(X509 *certificate, bool key_only, int *length) {
    uint8_t *bytes = NULL;
    *length = key_only ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes) : i2d_X509(certificate, &bytes);
    return *length > 0 ? bytes : NULL;
}

uint8_t *curlew_list_der(X509_CRL *list, int *length) {
    uint8_t *bytes = NULL;
    *length = i2d_X509_CRL(list, &bytes);
    return *length > 0 ? bytes : NULL;
}

char *curlew_list_issuer(X509_CRL *list) { return curlew_name_text(X509_CRL_get_issuer(list)); }

GENERAL_NAMES *curlew_names_read(X509 *certificate) {
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    ERR_clear_error();
    return names;
}

int curlew_names_count(const GENERAL_NAMES *names) { return names ? sk_GENERAL_NAME_num(names) : 0; }

const uint8_t *curlew_names_at(const GENERAL_NAMES *names, int index, int *kind, int *length) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
    const ASN1_STRING *value = NULL;
    *kind = name->type;
    switch (name->type) {
    case GEN_DNS: case GEN_EMAIL: case GEN_URI: value = name->d.ia5; break;
    case GEN_IPADD: value = name->d.iPAddress; break;
    default: break;
    }
    *length = value ? ASN1_STRING_length(value) : 0;
    return value ? ASN1_STRING_get0_data(value) : NULL;
}

void curlew_names_free(GENERAL_NAMES *names) { GENERAL_NAMES_free(names); }

bool curlew_certificate_is_for(X509 *certificate, const char *host, bool by_wildcards) {
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);
    if (address) {
        int matches = X509_check_ip(certificate, ASN1_STRING_get0_data(address), (size_t)ASN1_STRING_length(address), 0);
        ASN1_OCTET_STRING_free(address);
        return matches == 1;
    }
    ERR_clear_error();
    size_t length = strlen(host);
    if (length > 1 && host[length - 1] == '.') length--;
    // OpenSSL would match a name that begins with a dot with all hosts below it.
    if (length == 0 || host[0] == '.') return false;
    unsigned int flags = X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
    if (!by_wildcards) flags |= X509_CHECK_FLAG_NO_WILDCARDS;
    return X509_check_host(certificate, host, length, flags, NULL) == 1;
}

bool curlew_certificate_is_for_any_usage(X509 *certificate) {
    bool is_limited = X509_get_extension_flags(certificate) & EXFLAG_XKUSAGE;
    return is_limited && X509_get_extended_key_usage(certificate) & XKU_ANYEKU;
}

static char lower(char byte) { return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte; }

// Whether the host is the domain or below it. A domain with a leading dot matches only hosts below it; an empty domain
// matches every host.
static bool is_in_domain(const char *host, size_t length, const ASN1_STRING *domain) {
    const char *base = (const char *)ASN1_STRING_get0_data(domain);
    size_t size = (size_t)ASN1_STRING_length(domain);
    if (size == 0) return true;
    if (size > length) return false;
    const char *end = host + length - size;
    for (size_t i = 0; i < size; i++) {
        if (lower(end[i]) != lower(base[i])) return false;
    }
    return size == length || base[0] == '.' || end[-1] == '.';
}

// Whether the address is in the range, an address and a mask of the same length. A range of the other address family
// never matches.
static bool is_in_range(const ASN1_STRING *address, const ASN1_STRING *range) {
    int size = ASN1_STRING_length(address);
    if (ASN1_STRING_length(range) != 2 * size) return false;
    const uint8_t *bytes = ASN1_STRING_get0_data(address), *base = ASN1_STRING_get0_data(range);
    for (int i = 0; i < size; i++) {
        if ((bytes[i] ^ base[i]) & base[size + i]) return false;
    }
    return true;
}

// Returns whether one of the subtrees contains the host. Sets `occurs` if there is a subtree of the host's kind.
static bool is_in_one(const STACK_OF(GENERAL_SUBTREE) *trees, const char *host, size_t length,
                      const ASN1_STRING *address, bool *occurs) {
    bool found = false;
    for (int i = 0; trees && i < sk_GENERAL_SUBTREE_num(trees); i++) {
        const GENERAL_NAME *base = sk_GENERAL_SUBTREE_value(trees, i)->base;
        if (base->type != (address ? GEN_IPADD : GEN_DNS)) continue;
        *occurs = true;
        found = found || (address ? is_in_range(address, base->d.iPAddress)
                                  : is_in_domain(host, length, base->d.dNSName));
    }
    return found;
}

int curlew_certificate_constrains(X509 *authority, const char *host) {
    int place = -1;
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(authority, NID_name_constraints, &place, NULL);
    ASN1_OCTET_STRING *address = constraints ? a2i_IPADDRESS(host) : NULL;
    ERR_clear_error();
    if (!constraints) return place == -1 ? curlew_constraint_met : curlew_constraint_unreadable;
    size_t length = strlen(host);
    if (length > 1 && host[length - 1] == '.') length--;
    bool permits_some = false, excludes_some = false;
    bool permitted = is_in_one(constraints->permittedSubtrees, host, length, address, &permits_some);
    bool excluded = is_in_one(constraints->excludedSubtrees, host, length, address, &excludes_some);
    ASN1_OCTET_STRING_free(address);
    NAME_CONSTRAINTS_free(constraints);
    if (excluded) return curlew_constraint_excludes;
    return permitted || !permits_some ? curlew_constraint_met : curlew_constraint_permits_others;
}

bool curlew_certificate_must_staple(X509 *certificate) {
    int found = -1;
    TLS_FEATURE *features = X509_get_ext_d2i(certificate, NID_tlsfeature, &found, NULL);
    // Treat an unreadable extension as a requirement.
    bool must = found != -1 && !features;
    for (int i = 0; features && i < sk_ASN1_INTEGER_num(features); i++) {
        // The TLS extension number of status_request.
        must = must || ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features, i)) == TLSEXT_TYPE_status_request;
    }
    TLS_FEATURE_free(features);
    ERR_clear_error();
    return must;
}

bool curlew_certificate_is_authority(X509 *certificate) { return X509_check_ca(certificate) > 0; }

bool curlew_certificate_is_self_issued(X509 *certificate) {
    return X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) == 0;
}

void curlew_sha256(const uint8_t *bytes, size_t count, uint8_t digest[32]) {
    memset(digest, 0, 32);
    EVP_Digest(bytes, count, digest, NULL, EVP_sha256(), NULL);
}

void curlew_free(void *memory) { OPENSSL_free(memory); }

const char *curlew_tls_reason(void) {
    unsigned long error = ERR_peek_last_error();
    ERR_clear_error();
    const char *reason = error ? ERR_reason_error_string(error) : NULL;
    return reason ? reason : "OpenSSL reports no reason";
}
