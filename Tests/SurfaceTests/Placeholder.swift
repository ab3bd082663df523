// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0
