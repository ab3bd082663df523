// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CurlewEngine
import Testing

/// The TLS libraries that a session accepts, by the names that libcurl gives them.
@Suite struct TLSLibraryTests {
    @Test(arguments: ["OpenSSL/3.0.15", "OpenSSL/1.1.1w", "quictls/3.1.2", "(GnuTLS/3.7.9) OpenSSL/3.0.15"])
    func openSSLIsAccepted(_ name: String) { #expect(CurlVersion.isOpenSSL(name)) }

    @Test(arguments: [
        "GnuTLS/3.7.9", "LibreSSL/3.8.2", "BoringSSL", "AWS-LC/1.2", "wolfSSL/5.5", "none", "",
        "GnuTLS/3.7.9 (OpenSSL/3.0.15)",
    ])
    func otherLibrariesAreRefused(_ name: String) { #expect(!CurlVersion.isOpenSSL(name)) }

    @Test func currentLibraryIsAccepted() {
        #expect(CurlVersion.current.isSupported && CurlVersion.current.usesOpenSSL, "\(CurlVersion.current.tls)")
    }
}
