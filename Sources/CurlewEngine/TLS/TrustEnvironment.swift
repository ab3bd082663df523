// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The environment, as far as it may decide whom a program trusts and which credentials it uses.
package enum TrustEnvironment {
    /// A variable; nil in a set-user-ID program and in one with capabilities of its own (secure_getenv(3)).
    package static func variable(_ name: String) -> String? {
        curlew_trusted_variable(name).map { String(cString: $0) }
    }
}
