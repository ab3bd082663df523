// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The version of this library, as sent in `User-Agent`.
let libraryVersion = "0.1.0"
