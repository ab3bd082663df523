// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The libcurl this process runs with, which may be newer than the one it was compiled with.
package struct CurlVersion: Sendable {
    package let number: UInt32
    package let text: String
    package let tls: String
    package let hasHTTP2: Bool
    package let hasHTTP3: Bool
    package let hasThreadSafeInit: Bool

    /// The version, read once after libcurl has been initialised.
    package static let current = CurlVersion()

    package var isSupported: Bool { number >= 0x075800 }

    /// Whether libcurl uses OpenSSL, whose hooks evaluate servers; LibreSSL, GnuTLS and others lack them.
    package var usesOpenSSL: Bool { CurlVersion.isOpenSSL(tls) }

    /// Whether a TLS library that libcurl names, such as `OpenSSL/3.0.15`, is OpenSSL.
    ///
    /// A library in parentheses is built in but not in use.
    package static func isOpenSSL(_ name: String) -> Bool {
        name.split(separator: " ").contains { $0.hasPrefix("OpenSSL/") || $0.hasPrefix("quictls/") }
    }

    /// Whether a plain HTTP/2 connection can serve a second transfer: before 8.0.0, libcurl starts the protocol on it
    /// again, and both transfers fail.
    package let sharesPlainHTTP2: Bool

    /// Whether a transfer that waits to share a connection waits until the first response has ended, even if the
    /// connection cannot be shared: 8.23 does.
    package var keepsWaitingForShare: Bool { number >= 0x080000 }

    /// Whether a handle that joins an idle HTTP/2 connection sends the frames that nghttp2 has for it.
    package var flushesIdleConnections: Bool { number < 0x080000 }

    /// Whether libcurl reports success when an HTTP/2 connection ends or breaks the protocol inside a body without a
    /// length; it does so before 8.1.0.
    package var acceptsTruncatedStreams: Bool { number < 0x080100 }

    private init() {
        // At exit OpenSSL would free what a loop thread may still be using.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        let facts = curlew_version()?.pointee
        number = facts?.version_num ?? 0
        sharesPlainHTTP2 = number >= 0x080000
        text = facts?.version.map { String(cString: $0) } ?? "unknown"
        tls = facts?.ssl_version.map { String(cString: $0) } ?? "none"
        hasHTTP2 = (facts?.features ?? 0) & CURL_VERSION_HTTP2 != 0
        hasHTTP3 = (facts?.features ?? 0) & CURL_VERSION_HTTP3 != 0
        hasThreadSafeInit = (facts?.features ?? 0) & CURL_VERSION_THREADSAFE != 0
    }
}
