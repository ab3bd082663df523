// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// Environment variables that select trusted roots or credentials.
package enum TrustEnvironment {
    /// Returns the value of a variable; nil in a set-user-ID program and in one with file capabilities
    /// (secure_getenv(3)).
    package static func variable(_ name: String) -> String? {
        curlew_trusted_variable(name).map { String(cString: $0) }
    }
}
