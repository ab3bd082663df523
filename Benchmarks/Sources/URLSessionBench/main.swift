// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

print("not yet")
