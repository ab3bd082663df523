// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

/// The version of this library, as `User-Agent` names it.
let libraryVersion = "0.1.0"
