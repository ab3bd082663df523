// Copyright the Curlew authors.
// SPDX-License-Identifier: Apache-2.0

internal import CurlewShims

/// The TLS sessions that the handles of one domain share, freed after the last handle: libcurl refuses before.
final class TLSSessions {
    let share: UnsafeMutableRawPointer

    init?() {
        guard let share = curl_share_init() else { return nil }
        self.share = share
        _ = curlew_share_tls_sessions(share)
    }

    deinit {
        let code = curl_share_cleanup(share)
        assert(code == CURLSHE_OK, "a handle still uses the share, which is never freed then")
    }
}
