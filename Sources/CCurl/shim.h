// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
#ifndef CURLEW_CCURL_SHIM_H
#define CURLEW_CCURL_SHIM_H
#include <curl/curl.h>
#endif
