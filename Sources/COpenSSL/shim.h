// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_COPENSSL_SHIM_H
#define CURLEW_COPENSSL_SHIM_H
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#endif
