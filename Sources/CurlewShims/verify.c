// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "curlew_tls.h"

#include <openssl/ocsp.h>
#include <string.h>

// MARK: Chains

// Level 2 requires 112 bits of security, as NIST SP 800-57 does; it excludes RSA below 2048 bits and SHA-1.
static const int minimum_security_level = 2;

X509_STORE *curlew_store_make(void) {
    X509_STORE *store = X509_STORE_new();
    if (!store) return NULL;
    // The same flags as libcurl: an intermediate in the store may end a chain, and trusted issuers are preferred.
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
    // The level also applies to signers of OCSP responses.
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_get0_param(store), minimum_security_level);
    return store;
}

static STACK_OF(X509) *stack_of(X509 *const *certificates, int first, int count) {
    STACK_OF(X509) *stack = sk_X509_new_null();
    for (int i = first; stack && i < count; i++) {
        if (sk_X509_push(stack, certificates[i]) > 0) continue;
        sk_X509_free(stack);
        return NULL;
    }
    return stack;
}

static bool prepare(X509_STORE_CTX *context, X509_STORE *store, const curlew_verify_input *question,
                    STACK_OF(X509) *others, STACK_OF(X509_CRL) *lists) {
    if (!X509_STORE_CTX_init(context, store, question->served[0], others)) return false;
    if (!X509_STORE_CTX_set_default(context, "ssl_server")) return false;
    X509_VERIFY_PARAM *parameters = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_time(parameters, (time_t)question->now);
    if (question->is_strict) X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_X509_STRICT);
    if (question->list_count > 0) {
        unsigned long flags = X509_V_FLAG_CRL_CHECK;
        if (question->checks_chain) flags |= X509_V_FLAG_CRL_CHECK_ALL;
        X509_VERIFY_PARAM_set_flags(parameters, flags);
        X509_STORE_CTX_set0_crls(context, lists);
    }
    return true;
}

static void verify(X509_STORE *store, const curlew_verify_input *question, int count, curlew_verdict *verdict) {
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    STACK_OF(X509) *others = stack_of(question->served, 1, count);
    STACK_OF(X509_CRL) *lists = sk_X509_CRL_new_null();
    bool fine = context && others && lists;
    for (int i = 0; fine && i < question->list_count; i++) fine = sk_X509_CRL_push(lists, question->lists[i]) > 0;
    if (fine && prepare(context, store, question, others, lists)) {
        bool accepted = X509_verify_cert(context) == 1;
        verdict->code = X509_STORE_CTX_get_error(context);
        // A rejected chain must have an error code.
        if (!accepted && verdict->code == X509_V_OK) verdict->code = X509_V_ERR_UNSPECIFIED;
        if (accepted) {
            verdict->code = X509_V_OK;
            verdict->chain = X509_STORE_CTX_get1_chain(context);
        } else {
            verdict->depth = X509_STORE_CTX_get_error_depth(context);
            verdict->rejectedCertificate = X509_STORE_CTX_get_current_cert(context);
            if (verdict->rejectedCertificate) X509_up_ref(verdict->rejectedCertificate);
        }
    }
    X509_STORE_CTX_free(context);
    sk_X509_free(others);
    sk_X509_CRL_free(lists);
    ERR_clear_error();
}

static bool holds(X509_STORE *store, X509 *certificate) {
    X509_STORE_CTX *context = X509_STORE_CTX_new();
    bool found = false;
    if (context && X509_STORE_CTX_init(context, store, NULL, NULL)) {
        STACK_OF(X509) *same = X509_STORE_CTX_get1_certs(context, X509_get_subject_name(certificate));
        for (int i = 0; i < curlew_stack_count(same); i++) found |= X509_cmp(sk_X509_value(same, i), certificate) == 0;
        curlew_stack_free(same);
    }
    X509_STORE_CTX_free(context);
    ERR_clear_error();
    return found;
}

void curlew_verify(X509_STORE *store, const curlew_verify_input *question, curlew_verdict *verdict) {
    *verdict = (curlew_verdict){.code = X509_V_ERR_OUT_OF_MEM};
    if (question->served_count == 0) {
        verdict->code = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        return;
    }
    verify(store, question, question->served_count, verdict);
    if (verdict->code == X509_V_OK) verdict->is_anchor = holds(store, question->served[0]);
    // If the server's certificate is itself a root, its path ends there (RFC 5280 §6.1), but OpenSSL also verifies the
    // certificates above it. In this case verify the certificate alone.
    if (verdict->code == X509_V_OK || verdict->code == X509_V_ERR_CERT_REVOKED) return;
    if (question->served_count == 1 || !holds(store, question->served[0])) return;
    X509_free(verdict->rejectedCertificate);
    *verdict = (curlew_verdict){.code = X509_V_ERR_OUT_OF_MEM};
    verify(store, question, 1, verdict);
    verdict->is_anchor = verdict->code == X509_V_OK;
}

int curlew_stack_count(const STACK_OF(X509) *stack) { return stack ? sk_X509_num(stack) : 0; }

X509 *curlew_stack_at(const STACK_OF(X509) *stack, int index) {
    X509 *certificate = stack ? sk_X509_value(stack, index) : NULL;
    if (certificate) X509_up_ref(certificate);
    return certificate;
}

void curlew_stack_free(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }

// MARK: OCSP

// The tolerated clock difference between server and client in seconds.
static const int64_t skew = 300;

// RFC 6960 §4.2.2.1: a response is valid from thisUpdate to nextUpdate. A response without nextUpdate could be replayed
// forever, so it is not current.
static bool is_current(OCSP_SINGLERESP *single, int64_t now) {
    ASN1_GENERALIZEDTIME *this_update = NULL, *next_update = NULL;
    OCSP_single_get0_status(single, NULL, NULL, &this_update, &next_update);
    int64_t from = 0, to = 0;
    bool dated = curlew_time_seconds(this_update, &from) && curlew_time_seconds(next_update, &to);
    return dated && from <= now + skew && now - skew <= to;
}

// Whether the signature uses a digest without known collision attacks.
static bool is_strong(const OCSP_BASICRESP *basic) {
    int digest = NID_undef;
    const X509_ALGOR *algorithm = OCSP_resp_get0_tbs_sigalg(basic);
    bool known = algorithm && OBJ_find_sigid_algs(OBJ_obj2nid(algorithm->algorithm), &digest, NULL);
    return known && digest != NID_sha1 && digest != NID_md5 && digest != NID_md4;
}

// Whether the response is signed by the issuer, which the chain has verified, or by a delegate of it (RFC 6960
// §4.2.2.2). `others` begins with the issuer.
static bool is_authorized(OCSP_BASICRESP *basic, X509_STORE *store, STACK_OF(X509) *others) {
    X509 *issuer = sk_X509_value(others, 0);
    STACK_OF(X509) *alone = stack_of(&issuer, 0, 1);
    bool direct = alone && OCSP_basic_verify(basic, alone, store, OCSP_NOINTERN | OCSP_TRUSTOTHER) == 1;
    sk_X509_free(alone);
    return direct || OCSP_basic_verify(basic, others, store, OCSP_NOEXPLICIT) == 1;
}

// Whether a single response is about the certificate; it may identify it with any digest (RFC 6960 §4.1.1).
static bool is_about(OCSP_SINGLERESP *single, X509 *certificate, X509 *issuer) {
    const OCSP_CERTID *id = OCSP_SINGLERESP_get0_id(single);
    ASN1_OBJECT *algorithm = NULL;
    OCSP_id_get0_info(NULL, &algorithm, NULL, NULL, (OCSP_CERTID *)id);
    const EVP_MD *digest = algorithm ? EVP_get_digestbyobj(algorithm) : NULL;
    OCSP_CERTID *own = digest ? OCSP_cert_to_id(digest, certificate, issuer) : NULL;
    bool same = own && OCSP_id_cmp(own, id) == 0;
    OCSP_CERTID_free(own);
    return same;
}

static int status_of(OCSP_BASICRESP *basic, X509 *certificate, X509 *issuer, int64_t now) {
    int result = curlew_ocsp_other;
    for (int i = 0; i < OCSP_resp_count(basic); i++) {
        OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
        if (!is_about(single, certificate, issuer)) continue;
        int status = OCSP_single_get0_status(single, NULL, NULL, NULL, NULL);
        // A revocation is final, so an old response counts too.
        if (status == V_OCSP_CERTSTATUS_REVOKED) return curlew_ocsp_revoked;
        if (!is_current(single, now)) {
            if (result == curlew_ocsp_other) result = curlew_ocsp_stale;
        } else {
            result = status == V_OCSP_CERTSTATUS_GOOD ? curlew_ocsp_good : curlew_ocsp_unknown;
        }
    }
    return result;
}

int curlew_ocsp_read(X509_STORE *store, const uint8_t *bytes, size_t count, X509 *const *chain, int chain_count,
                       int64_t now) {
    if (chain_count < 2) return curlew_ocsp_no_issuer;
    const uint8_t *cursor = bytes;
    OCSP_RESPONSE *response = count <= INT32_MAX ? d2i_OCSP_RESPONSE(NULL, &cursor, (long)count) : NULL;
    OCSP_BASICRESP *basic = NULL;
    STACK_OF(X509) *others = stack_of(chain, 1, chain_count);
    int result = curlew_ocsp_malformed;
    if (response && cursor == bytes + count) {
        if (OCSP_response_status(response) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
            result = curlew_ocsp_unsuccessful;
        } else if ((basic = OCSP_response_get1_basic(response)) && others) {
            bool genuine = is_strong(basic) && is_authorized(basic, store, others);
            result = genuine ? status_of(basic, chain[0], chain[1], now) : curlew_ocsp_forged;
        }
    }
    sk_X509_free(others);
    OCSP_BASICRESP_free(basic);
    OCSP_RESPONSE_free(response);
    ERR_clear_error();
    return result;
}
