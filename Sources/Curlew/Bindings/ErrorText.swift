// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Returns the system's text for an errno value.
func errorText(_ errno: Int32) -> String { String(cString: strerror(errno)) }
