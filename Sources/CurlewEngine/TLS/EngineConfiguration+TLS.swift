// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

extension EngineConfiguration {
    /// The TLS settings of a loop, and their use: a new setting changes this file and the public configuration.
    package struct TLS: Sendable {
        package enum Version: String, Sendable, CaseIterable { case v1_2 = "1.2", v1_3 = "1.3" }

        package var minimum = Version.v1_2
        package var maximum: Version?
        /// Cipher suites of TLS 1.2 and 1.3 in OpenSSL's syntax; nil leaves the choice to OpenSSL.
        package var ciphers: String?
        package var suites: String?
        /// The server names sent in place of the host names (RFC 6066 §3); an empty string sends no name.
        package var serverNames: [String: String] = [:]
        /// Whether TLS negotiates the HTTP version (ALPN, RFC 7301).
        package var negotiates = true
        package var keyLog: KeyLog?

        package init() {}

        /// Whether OpenSSL knows at least one of the cipher suites named.
        package var ciphersAreKnown: Bool { curlew_ciphers_are_known(ciphers, suites) }
    }
}

extension EngineConfiguration.TLS {
    /// The oldest and the newest version, as libcurl's option.
    var versions: Int {
        let least = minimum == .v1_3 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        let most =
            switch maximum {
            case .v1_2: CURL_SSLVERSION_MAX_TLSv1_2
            case .v1_3: CURL_SSLVERSION_MAX_TLSv1_3
            case nil: CURL_SSLVERSION_MAX_NONE
            }
        return Int(least) | Int(most)
    }

    /// Sets the options of a handle that libcurl has itself.
    func apply(to curl: UnsafeMutableRawPointer) {
        _ = curlew_set_long(curl, CURLOPT_SSLVERSION, versions)
        if !negotiates { _ = curlew_set_long(curl, CURLOPT_SSL_ENABLE_ALPN, 0) }
    }

    /// Calls a closure with the options that OpenSSL gets for a connection to a host; they are valid during the call.
    func withOptions(
        host: String, wantsOCSPResponse: Bool, logsKeys: Bool, _ body: (inout curlew_judge_options) -> Bool
    ) -> Bool {
        withTexts(serverNames[host.withoutTrailingDot], ciphers, suites) { name, ciphers, suites in
            var options = curlew_judge_options(
                wants_ocsp_response: wantsOCSPResponse, logs_keys: logsKeys, server_name: name, ciphers: ciphers,
                suites: suites)
            return body(&options)
        }
    }
}

/// Calls `body` with three strings as C strings, nil as NULL.
private func withTexts<Result>(
    _ one: String?, _ two: String?, _ three: String?,
    _ body: (UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Result
) -> Result {
    func with(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
        guard let text else { return body(nil) }
        return text.withCString(body)
    }
    return with(one) { one in with(two) { two in with(three) { three in body(one, two, three) } } }
}
