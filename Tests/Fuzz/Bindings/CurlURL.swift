// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

import CCurl
import Glibc

/// The parts of a URL as libcurl reads them.
struct CurlURL {
    let scheme: String?
    let userInfo: String?
    let host: String?
    let port: String?
    let query: String?

    /// Parses a text; nil if libcurl refuses it.
    init?(_ text: String) {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        guard curl_url_set(handle, CURLUPART_URL, text, UInt32(CURLU_PATH_AS_IS)) == CURLUE_OK else { return nil }
        func part(_ name: CURLUPart, _ flags: UInt32 = 0) -> String? {
            var value: UnsafeMutablePointer<CChar>?
            guard curl_url_get(handle, name, &value, flags) == CURLUE_OK, let value else { return nil }
            defer { curl_free(value) }
            return String(cString: value)
        }
        scheme = part(CURLUPART_SCHEME)
        let password = part(CURLUPART_PASSWORD)
        userInfo = part(CURLUPART_USER).map { user in password.map { "\(user):\($0)" } ?? user }
        host = part(CURLUPART_HOST)
        port = part(CURLUPART_PORT, UInt32(CURLU_DEFAULT_PORT))
        query = part(CURLUPART_QUERY)
    }
}
